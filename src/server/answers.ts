import type { AnswerBudget } from '../engine/answer-budget.js';
import type { App } from './app-type.js';

/** Smaller ones are bounded by the connections. */
const smallBytes = 64 * 1024;

/** A large answer counts until it is sent, however slowly its client reads. */
export function countAnswers(app: App, answers: AnswerBudget): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const bytes = sizeOf(payload);
    if (bytes > smallBytes) reply.raw.once('close', answers.hold(bytes));
    done();
  });
}

/** 0: a stream, whose size nobody knows. */
function sizeOf(payload: unknown): number {
  if (typeof payload === 'string') return payload.length;
  return Buffer.isBuffer(payload) ? payload.length : 0;
}
