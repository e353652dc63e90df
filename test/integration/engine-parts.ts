import type { EngineContext } from '../../src/engine/context.js';
import { TaskEvents } from '../../src/engine/events.js';
import { defaultEngineSettings } from '../../src/engine/settings.js';
import type { ReadyQueue } from '../../src/ready/ready-queue.js';
import { AnswerBudget } from '../../src/engine/answer-budget.js';
import { LocalBus } from '../../src/runtime/bus.js';
import { silentLog } from '../../src/runtime/log.js';
import type { Database } from '../../src/store/database.js';

/** For a part of an engine that is tested alone. */
export function contextOf(db: Database, ready: ReadyQueue): EngineContext {
  return {
    db,
    ready,
    bus: new LocalBus(),
    closeLinks: () => Promise.resolve(),
    mode: 'memory',
    answers: new AnswerBudget(),
    events: new TaskEvents(() => undefined),
    settings: defaultEngineSettings,
    log: silentLog,
    random: Math.random,
    clock: null,
  };
}
