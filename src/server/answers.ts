import type { AnswerBudget } from '../engine/answer-budget.js';
import type { App } from './app-type.js';

/** Smaller ones are bounded by the connections. */
const smallBytes = 64 * 1024;

/** A large answer counts until it is sent or its client has left; a client that reads none of it is cut off. */
export function countAnswers(app: App, answers: AnswerBudget): void {
  app.addHook('onSend', ({ routeOptions }, { raw }, payload, done) => {
    const bytes = sizeOf(payload);
    // A client that left while its answer was made has closed its response already.
    if (bytes > smallBytes && !raw.closed && !raw.destroyed) {
      raw.once('close', answers.hold(bytes, routeOptions.config.scope === 'worker'));
      // Fires when nothing was read for so long; a slow reader is left alone.
      raw.setTimeout(answers.unreadForMs, () => raw.destroy());
    }
    done();
  });
}

/** 0: a stream, whose size nobody knows. */
function sizeOf(payload: unknown): number {
  if (typeof payload === 'string') return payload.length;
  return Buffer.isBuffer(payload) ? payload.length : 0;
}
