import { admit, allQueues, needsOf, type Applicant, type Ceiling } from '../domain/admission.js';
import type { TaskId } from '../domain/ids.js';
import {
  ceilingIn,
  countAdmitted,
  isOverfull,
  noCeilings,
  readStandings,
  type Ceilings,
  type Needed,
  type StandingRow,
} from './admission.js';
import type { Database, Instant, Queryable } from './database.js';
import { findByKey } from './find-by-key.js';
import { insertTasks } from './insert-tasks.js';
import type { Created, NewTask, Submitted } from './new-task.js';
import { withPartitions } from './partitions.js';
import { lockWorkflows, releaseHeads } from './release-heads.js';

/**
 * Answers in order; rows get their seq in the order of the array. Usually one statement inserts all.
 * What it leaves over had its key taken, or met a ceiling: then it is decided by the present counts
 * who is let in, and those are tried again. Whoever loses that race lost it to others who got in.
 */
export async function submitTasks(
  db: Database,
  tasks: readonly NewTask[],
  now: Instant,
  ceilings: Ceilings = noCeilings,
): Promise<Submitted[]> {
  const answers = new Map<TaskId, Submitted>();
  const unanswered = () => tasks.filter(({ taskId }) => !answers.has(taskId));
  const note = (found: ReadonlyMap<TaskId, Submitted>) => {
    for (const [taskId, submitted] of found) answers.set(taskId, submitted);
  };
  let rest = tasks;
  let needs = neededBy(tasks, remembered(tasks, ceilings));
  while (rest.length > 0) {
    const created = await insertUnlessFull(db, rest, needs, ceilings, now);
    if (created.size === tasks.length) return tasks.map(({ taskId }) => getFrom(created, taskId));
    note(created);
    note(await findKnown(db, unanswered(), now));
    rest = unanswered();
    if (rest.length === 0) break;
    const standings = await readStandings(db, scopesOf(rest), ceilings.all);
    note(await refuse(db, rest, standings, ceilings, now));
    rest = unanswered();
    needs = neededBy(rest, standings);
  }
  return tasks.map(({ taskId }) => getFrom(answers, taskId));
}

async function insertUnlessFull(
  db: Database,
  tasks: readonly NewTask[],
  needs: readonly Needed[],
  { isNear, noteReached }: Ceilings,
  now: Instant,
): Promise<Map<TaskId, Created>> {
  const looks = isNear();
  try {
    return await withPartitions(db, { created: tasks, now }, () =>
      tasks.some((task) => task.workflowId !== null)
        ? db.transaction((tx) => insertIntoWorkflows(tx, tasks, needs, looks, now))
        : insertTasks(db.ordered, tasks, needs, { counts: true, looks }, now),
    );
  } catch (error) {
    if (!isOverfull(error)) throw error;
    noteReached();
    return new Map();
  }
}

/** Members are inserted behind their workflow; those with nobody in front are then let go. */
async function insertIntoWorkflows(
  tx: Queryable,
  tasks: readonly NewTask[],
  needs: readonly Needed[],
  looks: boolean,
  now: Instant,
): Promise<Map<TaskId, Created>> {
  const workflowIds = tasks.flatMap((task) => task.workflowId ?? []);
  await lockWorkflows(tx, workflowIds);
  const created = await insertTasks(tx, tasks, needs, { counts: false, looks }, now);
  for (const head of await releaseHeads(tx, workflowIds, now)) {
    const task = created.get(head.taskId);
    if (task !== undefined) created.set(head.taskId, { ...task, waitsFor: 'time' });
  }
  const queues = tasks.filter(({ taskId }) => created.has(taskId)).map(({ queue }) => queue);
  await countAdmitted(tx, queues, needs);
  return created;
}

/** A key that came in just before the last place was taken is answered and not refused. */
async function refuse(
  db: Database,
  tasks: readonly NewTask[],
  standings: ReadonlyMap<string, StandingRow>,
  ceilings: Ceilings,
  now: Instant,
): Promise<Map<TaskId, Submitted>> {
  const answers = new Map<TaskId, Submitted>();
  const reached = admit(tasks.map(applicantOf), standings);
  const refused = tasks.filter((_, index) => reached[index] !== null);
  if (refused.length === 0) return answers;
  ceilings.noteReached();
  const known = await findKnown(db, refused, now);
  tasks.forEach(({ taskId }, index) => {
    const ceiling = reached[index] ?? null;
    if (ceiling === null) return;
    const { ended } = getFrom(standings, ceiling.scope);
    const refusal = { kind: 'refused', taskId, reached: ceiling, ended } as const;
    answers.set(taskId, known.get(taskId) ?? refusal);
  });
  return answers;
}

async function findKnown(
  db: Database,
  tasks: readonly NewTask[],
  now: Instant,
): Promise<ReadonlyMap<TaskId, Submitted>> {
  const keyed = tasks.filter(({ idempotency }) => idempotency !== null);
  return keyed.length === 0 ? new Map() : findByKey(db, keyed, now);
}

function applicantOf({ queue, priority, passesCeilings, idempotency }: NewTask): Applicant {
  const key = idempotency === null ? null : JSON.stringify([idempotency.scope, idempotency.key]);
  return { queue, priority, passesCeilings, key };
}

function scopesOf(tasks: readonly NewTask[]): string[] {
  return [allQueues, ...new Set(tasks.map(({ queue }) => queue))];
}

/** Of each scope the ceiling, and what the queue itself is thought to allow. */
type KnownCeilings = ReadonlyMap<
  string,
  { readonly maxActive: number | null; readonly ceiling: Ceiling | null }
>;

/** As this server remembers them: the statement says no if they changed. */
function remembered(tasks: readonly NewTask[], { all, maxActiveOf }: Ceilings): KnownCeilings {
  return new Map(
    scopesOf(tasks).map((scope) => {
      if (scope === allQueues) return [scope, { maxActive: null, ceiling: all }];
      const maxActive = maxActiveOf(scope);
      return [scope, { maxActive, ceiling: ceilingIn(maxActive, all) }];
    }),
  );
}

function neededBy(tasks: readonly NewTask[], known: KnownCeilings): Needed[] {
  const ceilings = new Map(
    [...known].flatMap(([scope, { ceiling }]) =>
      ceiling === null ? [] : [[scope, ceiling] as const],
    ),
  );
  return needsOf(tasks.map(applicantOf), ceilings).map((need) => ({
    ...need,
    maxActive: known.get(need.scope)?.maxActive ?? null,
  }));
}

function getFrom<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): NonNullable<Value> {
  const value = map.get(key);
  if (value === undefined || value === null) {
    throw new Error(`nothing was answered for ${String(key)}`);
  }
  return value;
}
