import { createHash } from 'node:crypto';
import { reachesQueue, unconfined, type Confinement } from '../domain/confinement.js';
import { SluiceError, type FieldError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import { costFaults } from '../domain/limit-faults.js';
import { defaultQueue } from '../domain/queue-settings.js';
import { sortKeys } from '../domain/sort-keys.js';
import {
  judgeDefinition,
  maxTaskTypes,
  type DefinitionVerdict,
  type LivingHolders,
  type ToldDefinition,
} from '../domain/task-types.js';
import { bounds } from '../protocol/bounds.js';
import { trimDefinition } from '../protocol/definition-size.js';
import { findJsonFault } from '../protocol/json-measure.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { invalidRequest } from '../protocol/problem-wire.js';
import type {
  ListedTaskType,
  TaskDefaults,
  TaskTypeDefinition,
  TaskTypeView,
} from '../protocol/task-types-api.js';
import { definitionToWire } from '../protocol/task-types-wire.js';
import type { TaskDraft } from '../protocol/tasks-api.js';
import type { Registration } from '../protocol/workers-api.js';
import { Loop } from '../runtime/loop.js';
import {
  changeTaskTypes,
  findLivingHolders,
  findTaskType,
  findTaskTypes,
  findTaskTypesChanged,
  insertTaskTypes,
  listTaskTypes,
  noteTypesSeen,
  type TaskTypeRow,
} from '../store/task-types.js';
import { instant, patiently, type EngineContext } from './context.js';

/** How often a process reads what others defined, when the bus did not tell it. */
const refreshMs = 2_000;
/** A change that committed late may be older than one already seen. */
const overlapMs = 30_000;
/** A definition that a worker tells again is noted as seen once in so long. */
const seenEveryMs = 24 * 3_600_000;
/** Two workers that define a type at the same time: one of them looks again. */
const maxTries = 5;
/** Past this many, disputes that were logged are forgotten, and would be logged again. */
const maxRemembered = 1_000;
const noDefaults: TaskDefaults = {};
const nobodyLives: LivingHolders = { any: false, ofPresentVersion: false };

interface Told {
  readonly definition: TaskTypeDefinition;
  readonly told: ToldDefinition;
}

type Judged = Told & { readonly present: TaskTypeRow | null; readonly verdict: DefinitionVerdict };
type Taken = Judged & { readonly verdict: { readonly kind: 'take' } };

/**
 * The definitions of task types that count, as last read: Postgres holds the truth, workers tell it when they
 * register. A submit looks into a map, and never waits for Postgres.
 */
export class TaskTypes {
  readonly #context: EngineContext;
  readonly #known = new Map<string, TaskTypeRow>();
  readonly #loop: Loop;
  readonly #stopListening: () => void;
  readonly #disputes = new Set<string>();
  #readAtMs: number | null = null;
  #nextWholeMs = -Infinity;

  constructor(context: EngineContext, onError: (error: unknown) => void) {
    this.#context = context;
    this.#loop = new Loop({ tick: () => this.#tick(), onError });
    this.#stopListening = context.bus.subscribe((message) => {
      if (isNews(message)) this.#loop.wake();
    });
  }

  /** Knows all types when it resolves, and follows what changes until it is stopped. */
  async watch(): Promise<void> {
    await this.#refresh();
    this.#loop.start();
  }

  async stop(): Promise<void> {
    this.#stopListening();
    await this.#loop.stop();
  }

  /**
   * What a draft gets that does not say it itself. A definition does not exist for a caller that does not reach
   * its queue, nor for tasks of a queue that the key of its worker does not reach.
   */
  defaultsOf({ taskType, queue }: TaskDraft, caller: Confinement): TaskDefaults {
    const type = this.#known.get(taskType);
    if (type === undefined) return noDefaults;
    if (!reachesQueue(caller, type.queue ?? defaultQueue)) return noDefaults;
    const { within } = type;
    if (within === null || queue === undefined) return type.defaults;
    return reachesQueue({ queues: within, owner: null }, queue) ? type.defaults : noDefaults;
  }

  listTaskTypes(page: PageRequest, within: Confinement): Promise<Page<ListedTaskType>> {
    return listTaskTypes(this.#context.db.reads, page, within);
  }

  async getTaskType(name: string, within: Confinement): Promise<TaskTypeView> {
    const type = await findTaskType(this.#context.db.reads, name, within);
    if (type !== null) return type;
    throw new SluiceError('task_type_not_found', `No worker defined the task type ${name}.`);
  }

  /** What a worker tells when it registers. Answers with what of it does not count, a sentence each. */
  async define(registration: Registration): Promise<readonly string[]> {
    const { definitions = [] } = registration;
    if (definitions.length === 0) return [];
    const faults = definitionFaults(registration);
    if (faults.length > 0) throw invalidRequest(faults);
    const trimmed = definitions.map(trimDefinition);
    const told = trimmed.map(({ definition }) => toTold(definition, registration));
    const notes = await patiently(() => this.#settle(told));
    return [...trimmed.flatMap((one) => one.notes), ...notes];
  }

  async #settle(told: readonly Told[]): Promise<string[]> {
    const notes: string[] = [];
    let open = told;
    for (let tries = 1; open.length > 0; tries += 1) {
      const judged = await this.#judge(open);
      for (const one of judged) {
        if (one.verdict.kind === 'refuse') notes.push(this.#refused(one, one.verdict.why));
      }
      await this.#noteSeen(judged);
      const taken = judged.filter(isTaken);
      const written = await this.#write(taken);
      for (const one of taken) if (written.has(one.definition.taskType)) this.#taken(one);
      open = taken.filter(({ definition }) => !written.has(definition.taskType));
      if (tries < maxTries) continue;
      for (const { definition } of open) notes.push(this.#noRoom(definition.taskType));
      break;
    }
    return notes;
  }

  async #judge(told: readonly Told[]): Promise<Judged[]> {
    const { db } = this.#context;
    const names = told.map(({ definition }) => definition.taskType);
    const rows = new Map((await findTaskTypes(db, names)).map((row) => [row.name, row]));
    const differing = told.flatMap(({ definition, told: { fingerprint } }) => {
      const row = rows.get(definition.taskType);
      return row === undefined || row.fingerprint === fingerprint ? [] : [row];
    });
    const holders = differing.length === 0 ? [] : await findLivingHolders(db, differing);
    const living = new Map(holders.map((one) => [one.name, { ...one, any: true }]));
    return told.map((one) => {
      const name = one.definition.taskType;
      const present = rows.get(name) ?? null;
      const verdict = judgeDefinition(present, one.told, living.get(name) ?? nobodyLives);
      return { ...one, present, verdict };
    });
  }

  /** The names of those that count now. */
  async #write(taken: readonly Taken[]): Promise<ReadonlySet<string>> {
    if (taken.length === 0) return new Set();
    const { db, bus } = this.#context;
    const now = instant(this.#context);
    const added = taken.filter(({ present }) => present === null);
    const changed = taken.flatMap((one) =>
      one.present === null ? [] : [{ ...one, revision: one.present.revision }],
    );
    const rows = [
      ...(added.length === 0 ? [] : await insertTaskTypes(db, added, now)),
      ...(changed.length === 0 ? [] : await changeTaskTypes(db, changed, now)),
    ];
    for (const row of rows) this.#note(row);
    if (rows.length > 0) bus.publish({ kind: news });
    return new Set(rows.map(({ name }) => name));
  }

  async #noteSeen(judged: readonly Judged[]): Promise<void> {
    const { db, clock } = this.#context;
    const nowMs = clock === null ? db.nowMs() : clock.nowMs();
    const stale = judged.flatMap(({ present, verdict }) =>
      verdict.kind === 'keep' && present !== null && nowMs - present.seenAt.getTime() > seenEveryMs
        ? [present.name]
        : [],
    );
    if (stale.length > 0) await noteTypesSeen(db, stale, instant(this.#context));
  }

  #taken({ definition, told, present, verdict }: Taken): void {
    const { taskType } = definition;
    if (present === null || present.fingerprint === told.fingerprint) return;
    const what = { task_type: taskType, differs_in: differences(present, definition) };
    const versions = { version: told.version, was: present.version };
    if (!verdict.isDisputed) {
      this.#context.log.info({ ...what, ...versions }, 'the definition of a task type changed');
      return;
    }
    if (!this.#isFirst(taskType, told, present)) return;
    this.#context.log.warn(
      { ...what, ...versions },
      `two workers define the task type ${taskType} differently: the one that registered last counts. ` +
        'Give workers a version, so that the newer one counts',
    );
  }

  #refused({ definition, told, present }: Judged, why: 'older' | 'confined'): string {
    const { taskType, queue = defaultQueue } = definition;
    const sentence =
      why === 'confined'
        ? `This key is confined to the queues ${(told.within ?? []).join(', ')}: it may not decide ` +
          `what submits of ${taskType} get, or that they go to ${queue}.`
        : `A worker with version ${present?.version ?? ''} defines ${taskType} differently ` +
          `(${present === null ? '' : differences(present, definition).join(', ')}): its definition ` +
          `counts, not that of version ${told.version ?? ''}.`;
    if (this.#isFirst(taskType, told, present)) {
      this.#context.log.warn({ task_type: taskType, version: told.version }, sentence);
    }
    return sentence;
  }

  #noRoom(taskType: string): string {
    const sentence =
      `The definition of ${taskType} is not kept: there are ${maxTaskTypes} task types already, or ` +
      'others define it at the same time. Submits of it must say all they need.';
    this.#context.log.warn({ task_type: taskType }, sentence);
    return sentence;
  }

  /** Whichever of the two registers next, however often. */
  #isFirst(taskType: string, one: ToldDefinition, other: ToldDefinition | null): boolean {
    const pair = [one.fingerprint, other?.fingerprint ?? ''].sort().join(' ');
    const dispute = `${taskType} ${pair}`;
    if (this.#disputes.has(dispute)) return false;
    if (this.#disputes.size >= maxRemembered) this.#disputes.clear();
    this.#disputes.add(dispute);
    return true;
  }

  async #tick(): Promise<number> {
    await this.#refresh();
    return refreshMs;
  }

  /** Only the loop reads, one read after the other: what was read last is the newest. */
  async #refresh(): Promise<void> {
    const { db, settings } = this.#context;
    const beganMs = performance.now();
    const isWhole = this.#readAtMs === null || beganMs >= this.#nextWholeMs;
    const since = isWhole ? null : new Date((this.#readAtMs ?? 0) - overlapMs);
    const readAtMs = db.nowMs();
    const knownBefore = isWhole ? [...this.#known.values()] : [];
    const rows = await findTaskTypesChanged(db, since);
    for (const row of rows) this.#note(row);
    this.#readAtMs = readAtMs;
    if (!isWhole) return;
    const names = new Set(rows.map(({ name }) => name));
    for (const before of knownBefore) {
      const isGone = !names.has(before.name) && this.#known.get(before.name) === before;
      if (isGone) this.#known.delete(before.name);
    }
    this.#nextWholeMs = beganMs + settings.rereadIntervalMs;
  }

  /** Unless something newer is known: a read may have begun before a write that is noted already. */
  #note(row: TaskTypeRow): void {
    if (row.revision > (this.#known.get(row.name)?.revision ?? 0)) this.#known.set(row.name, row);
  }
}

const news = 'task types';

function isNews(message: unknown): boolean {
  return (
    typeof message === 'object' && message !== null && 'kind' in message && message.kind === news
  );
}

function isTaken(judged: Judged): judged is Taken {
  return judged.verdict.kind === 'take';
}

function toTold(definition: TaskTypeDefinition, registration: Registration): Told {
  const { version = null, within = unconfined } = registration;
  const { queue = null } = definition;
  return {
    definition,
    told: { queue, fingerprint: fingerprint(definition), version, within: within.queues },
  };
}

function fingerprint(definition: TaskTypeDefinition): string {
  const { required_capabilities: capabilities, ...wire } = definitionToWire(definition);
  const whole = { ...wire, required_capabilities: [...new Set(capabilities)].sort() };
  return createHash('sha256')
    .update(JSON.stringify(sortKeys(whole)))
    .digest('hex');
}

/** The names of what differs, as they stand on the wire. */
function differences(present: TaskTypeRow, definition: TaskTypeDefinition): string[] {
  const one = asFields({ ...present.defaults, taskType: present.name });
  const other = asFields(definition);
  const fields = [
    'queue',
    'priority',
    'required_capabilities',
    'timeout_seconds',
    'max_retries',
    'cost',
  ];
  const differing = fields.filter((field) => one[field] !== other[field]);
  return differing.length > 0 ? differing : ['retry or input_schema'];
}

function asFields(definition: TaskTypeDefinition): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(definitionToWire(definition)).map(([name, value]) => [
      name,
      JSON.stringify(sortKeys(value as JsonObject)),
    ]),
  );
}

const tooLarge =
  `takes more than ${bounds.taskDefaultsBytes / 1024} KiB without retry and input_schema: ` +
  'name fewer capabilities or units';

/** What the schema can't say. */
function definitionFaults({ definitions = [], taskTypes }: Registration): FieldError[] {
  const handled = taskTypes === undefined || taskTypes.includes('*') ? null : new Set(taskTypes);
  const seen = new Set<string>();
  return definitions.flatMap((definition, index) => {
    const { taskType, cost = {}, retry: _, inputSchema: __, ...defaults } = definition;
    const path = `/definitions/${String(index)}`;
    const isTwice = seen.has(taskType);
    seen.add(taskType);
    return [
      ...(isTwice ? [{ path: `${path}/task_type`, message: 'is defined twice' }] : []),
      ...(handled?.has(taskType) === false
        ? [{ path: `${path}/task_type`, message: 'is none of task_types' }]
        : []),
      ...costFaults(cost, `${path}/cost`),
      ...(findJsonFault(defaults, bounds.taskDefaultsBytes) === null
        ? []
        : [{ path, message: tooLarge }]),
    ];
  });
}
