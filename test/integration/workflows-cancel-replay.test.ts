import { expect, it } from 'vitest';

import type { TaskId } from '../../src/domain/ids.js';
import type { Engine } from '../../src/engine/open-engine.js';
import type { ClaimedTask } from '../../src/protocol/workers-api.js';
import {
  describeOnEveryEngine,
  drafts,
  freshQueue,
  indexOf,
  refusal,
  submitAll,
  TestWorker,
  untilStatus,
} from './support.js';

type OnFailure = 'halt' | 'continue';

const members = 4;

/** A workflow of four members, 0 to 3, and one worker; each step is a word or two. */
class Line {
  readonly #engine: Engine;
  readonly #advance: (ms: number) => void;
  readonly #worker: TestWorker;
  readonly #taskIds: readonly TaskId[];
  #running: ClaimedTask | null = null;

  private constructor(
    engine: Engine,
    advance: (ms: number) => void,
    worker: TestWorker,
    taskIds: readonly TaskId[],
  ) {
    this.#engine = engine;
    this.#advance = advance;
    this.#worker = worker;
    this.#taskIds = taskIds;
  }

  static async begin(
    engine: Engine,
    advance: (ms: number) => void,
    workflowOnFailure: OnFailure,
    deadline: { dispatchDeadlineSeconds?: number },
  ): Promise<Line> {
    const queue = freshQueue();
    const draft = { taskType: 'step', queue, workflowId: queue, workflowOnFailure, maxRetries: 0 };
    const taskIds = await submitAll(engine, drafts(members, { ...draft, ...deadline }));
    const worker = await TestWorker.register(engine, { queues: [queue] });
    return new Line(engine, advance, worker, taskIds);
  }

  async step(step: string): Promise<void> {
    const [words = '', code] = step.split(': ');
    const [verb = '', index] = words.split(' ');
    const taskId = this.#taskIds[Number(index)];
    switch (verb) {
      case 'runs':
        this.#running = await this.#worker.takeOne();
        expect(indexOf(this.#running), step).toBe(Number(index));
        return;
      case 'nothing':
        expect(await this.#worker.look(5, { waitMs: 50 }), step).toEqual([]);
        return;
      case 'completes':
        expect(await this.#worker.complete(this.#held())).toMatchObject({ accepted: true });
        return;
      case 'fails':
        expect(await this.#worker.fail(this.#held())).toMatchObject({ accepted: true });
        return;
      case 'retries':
        await this.#engine.release(this.#worker.workerId, [this.#held()]);
        return;
      case 'lets-go':
        expect(await this.#worker.complete(this.#held())).toMatchObject({ accepted: false });
        return;
    }
    if (taskId === undefined) throw new Error(`what is "${step}"?`);
    switch (verb) {
      case 'expires':
        await untilStatus(this.#engine, taskId, 'queued');
        this.#advance(61_000);
        await untilStatus(this.#engine, taskId, 'failed');
        return;
      case 'cancel':
        expect(await refusal(this.#engine.cancelTask(taskId)), step).toBe(code ?? null);
        return;
      case 'replay':
        expect(await refusal(this.#engine.replayTask(taskId)), step).toBe(code ?? null);
        return;
    }
    throw new Error(`what is "${step}"?`);
  }

  async runRest(indexes: readonly number[]): Promise<void> {
    for (const index of indexes) {
      await this.step(`runs ${index}`);
      expect(await this.#worker.look(5)).toEqual([]);
      await this.step('completes');
    }
    await this.step('nothing');
  }

  #held(): ClaimedTask {
    if (this.#running === null) throw new Error('nothing runs');
    return this.#running;
  }
}

/** What happens, and who of the others then runs, in order, until nothing is left to run. */
const inBoth: [string, string, number[]][] = [
  ['a head that is in line is cancelled', 'cancel 0', [1, 2, 3]],
  ['one in the middle that waits is cancelled', 'cancel 1', [0, 2, 3]],
  ['the last that waits is cancelled', 'cancel 3', [0, 1, 2]],
  ['cancelled twice, it is cancelled once', 'cancel 1, cancel 1', [0, 2, 3]],
  ['all that wait are cancelled', 'runs 0, cancel 3, cancel 2, cancel 1, completes', []],
  ['one that runs is cancelled and let go', 'runs 0, cancel 0, nothing, lets-go', [1, 2, 3]],
  [
    'one that runs is cancelled, replayed, and then let go: it runs again, in its place',
    'runs 0, cancel 0, replay 0, nothing, lets-go',
    [0, 1, 2, 3],
  ],
  [
    'one behind a cancelled one that was not let go is cancelled',
    'runs 0, cancel 0, cancel 1, nothing, lets-go',
    [2, 3],
  ],
  ['a cancelled head is replayed while the next is in line', 'cancel 0, replay 0', [1, 0, 2, 3]],
  [
    'a cancelled head is replayed while the next runs: it waits, also through its retry',
    'cancel 0, runs 1, replay 0, nothing, retries, runs 1, completes',
    [0, 2, 3],
  ],
  ['one is replayed before its turn came', 'cancel 2, replay 2', [0, 1, 2, 3]],
  [
    'two are replayed the wrong way round: they run in the order of their submission',
    'cancel 0, cancel 1, runs 2, replay 1, replay 0, completes',
    [0, 1, 3],
  ],
  [
    'one is replayed when all others have ended',
    'cancel 1, runs 0, completes, runs 2, completes, runs 3, completes, nothing, replay 1',
    [1],
  ],
  ['a member that goes back keeps its place', 'runs 0, retries', [0, 1, 2, 3]],
  [
    'what waits or runs is not replayed',
    'replay 1: task_not_ended, runs 0, replay 0: task_not_ended, completes',
    [1, 2, 3],
  ],
  [
    'what has completed is neither cancelled nor replayed',
    'runs 0, completes, cancel 0: task_ended, replay 0: task_completed',
    [1, 2, 3],
  ],
];

const inOne: Record<OnFailure, [string, string, number[]][]> = {
  halt: [
    ['the first fails and is replayed', 'runs 0, fails, nothing, replay 0', [0, 1, 2, 3]],
    ['the first fails and is cancelled', 'runs 0, fails, nothing, cancel 0', [1, 2, 3]],
    [
      'one in the middle fails, is cancelled, and replayed while the next is in line',
      'runs 0, completes, runs 1, fails, cancel 1, replay 1',
      [2, 1, 3],
    ],
    ['the last fails', 'cancel 0, cancel 1, cancel 2, runs 3, fails, nothing, replay 3', [3]],
    [
      'those behind it are cancelled, and it stays',
      'runs 0, fails, cancel 1, nothing, cancel 0',
      [2, 3],
    ],
    [
      'it is replayed and fails again',
      'runs 0, fails, replay 0, runs 0, fails, nothing, cancel 0',
      [1, 2, 3],
    ],
    ['one expires and is replayed', 'expires 0, nothing, replay 0', [0, 1, 2, 3]],
    ['one expires and is cancelled', 'expires 0, nothing, cancel 0', [1, 2, 3]],
    [
      'one fails while a replayed one waits in front of it: that one runs, those behind do not',
      'cancel 0, runs 1, replay 0, fails, runs 0, completes, nothing, replay 1',
      [1, 2, 3],
    ],
  ],
  continue: [
    ['the first fails', 'runs 0, fails', [1, 2, 3]],
    ['all fail', 'runs 0, fails, runs 1, fails, runs 2, fails, runs 3, fails', []],
    [
      'one that failed is past and is not cancelled',
      'runs 0, fails, cancel 0: task_ended',
      [1, 2, 3],
    ],
    [
      'one that failed is replayed while the next is in line',
      'runs 0, fails, replay 0',
      [1, 0, 2, 3],
    ],
    [
      'one that failed is replayed while the next runs',
      'runs 0, fails, runs 1, replay 0, nothing, completes',
      [0, 2, 3],
    ],
    [
      'the last fails and is replayed',
      'cancel 0, cancel 1, cancel 2, runs 3, fails, nothing, replay 3',
      [3],
    ],
    ['one expires', 'expires 0', [1, 2, 3]],
    ['one that expired is replayed while the next is in line', 'expires 0, replay 0', [1, 0, 2, 3]],
    [
      'one fails while a replayed one waits in front of it',
      'cancel 0, runs 1, replay 0, fails',
      [0, 2, 3],
    ],
  ],
};

describeOnEveryEngine('R-WO2: inside a workflow', (under) => {
  const cases = (['halt', 'continue'] as const).flatMap((onFailure) =>
    [...inBoth, ...inOne[onFailure]].map(([what, steps, rest]) => ({
      onFailure,
      what,
      steps,
      rest,
    })),
  );

  // An expiry moves the clock that all share.
  const expiring = cases.filter(({ steps }) => steps.includes('expires'));
  const others = cases.filter(({ steps }) => !steps.includes('expires'));

  it.concurrent.each(others)('that is to $onFailure, $what', (one) => live(one, {}));

  it.each(expiring)('that is to $onFailure, $what', (one) =>
    live(one, { dispatchDeadlineSeconds: 60 }),
  );

  async function live(
    { onFailure, steps, rest }: (typeof cases)[number],
    deadline: { dispatchDeadlineSeconds?: number },
  ): Promise<void> {
    const { engine, clock } = under();
    const line = await Line.begin(engine, (ms) => clock.advance(ms), onFailure, deadline);
    for (const step of steps.split(', ')) await line.step(step);
    await line.runRest(rest);
  }
});
