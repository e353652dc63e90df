import {
  allQueues,
  ceilingOf,
  retryAfterSeconds,
  type Ceiling,
  type ReachedCeiling,
} from '../domain/admission.js';
import type { Priority } from '../domain/priority.js';
import type { RateLimit } from '../domain/queue-settings.js';
import { hasEnded } from '../domain/task-state.js';
import type { Refusal } from '../protocol/problem-wire.js';
import { readStandings, type Ceilings } from '../store/admission.js';
import type { Refused } from '../store/new-task.js';
import { approximateNow, type EngineContext } from './context.js';
import { DrainRate } from './drain-rate.js';
import type { QueueDirectory } from './queue-directory.js';
import { pauseLeftMs } from './queue-pause.js';
import { ReachedCeilings } from './reached-ceilings.js';

/** As long after one was reached, somebody looks for room before he writes. */
const nearForMs = 10_000;

/** The ceilings as this server knows them, and what whoever meets one is told. */
export class Admission {
  readonly #context: EngineContext;
  readonly #queues: QueueDirectory;
  readonly #all: Ceiling;
  readonly #drains = new DrainRate();
  #nearUntilMs = 0;
  /** Who may be refused without a look, for a moment. */
  readonly reached = new ReachedCeilings();

  constructor(context: EngineContext, queues: QueueDirectory) {
    this.#context = context;
    this.#queues = queues;
    this.#all = ceilingOf(context.settings);
    context.events.subscribe(({ to }) => {
      if (hasEnded(to)) this.reached.forget();
    });
  }

  ceilings(): Ceilings {
    return {
      all: this.#all,
      maxActiveOf: (queue) => this.#queues.settingsOf(queue).maxActive,
      isNear: () => performance.now() < this.#nearUntilMs,
      noteReached: () => {
        this.#nearUntilMs = performance.now() + nearForMs;
      },
    };
  }

  refusal(queue: string, priority: Priority, { reached, ended }: Refused): Refusal {
    const { scope, limit, active } = reached;
    const nowMs = approximateNow(this.#context).getTime();
    const seconds = retryAfterSeconds(
      {
        mustEnd: active - limit + 1,
        endedPerSecond: this.#drains.perSecond(scope, ended, nowMs),
        fastestPerSecond: scope === allQueues ? null : this.#fastestPerSecond(queue),
        pausedForMs: scope === allQueues ? 0 : this.#pausedForMs(queue, nowMs),
      },
      this.#context.random(),
    );
    return {
      code: 'refused',
      detail: detailOf(reached, priority, Math.ceil(seconds)),
      retryAfterSeconds: Math.ceil(seconds),
      ceiling: { queue: scope === allQueues ? null : scope, limit, active },
    };
  }

  /** Of all queues together. */
  async standing(): Promise<{ active: number; maxActive: number }> {
    const active = await this.activeIn([allQueues]);
    return { active: active.get(allQueues) ?? 0, maxActive: this.#all.high };
  }

  /** Of scopes that are counted. Also asked after a write, so it waits for no turn among people's reads. */
  async activeIn(scopes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    if (scopes.length === 0) return new Map();
    const standings = await readStandings(this.#context.db, scopes, this.#all);
    return new Map([...standings].map(([scope, { active }]) => [scope, active]));
  }

  /** Tasks that its limits in requests let through: each costs at least one. */
  #fastestPerSecond(queue: string): number | null {
    const { limits } = this.#queues.settingsOf(queue);
    const rates = limits
      .filter((limit): limit is RateLimit => 'rate' in limit && limit.unit === 'requests')
      .map(({ rate, perSeconds }) => rate / perSeconds);
    return rates.length === 0 ? null : Math.min(...rates);
  }

  #pausedForMs(queue: string, nowMs: number): number {
    const settings = this.#queues.settingsOf(queue);
    return pauseLeftMs({ settings, circuit: this.#queues.circuitOf(queue) }, nowMs) ?? 0;
  }
}

function detailOf({ scope, limit, active }: ReachedCeiling, priority: Priority, s: number): string {
  const where = scope === allQueues ? 'in all queues together' : `in queue ${scope}`;
  return (
    `${active} tasks are active ${where}, and tasks of ${priority} priority are refused from ` +
    `${limit}. Nothing was accepted: send it again in ${s} s, when some have ended.`
  );
}
