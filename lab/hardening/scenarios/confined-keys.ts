import { NodeHttpApi } from '../../../src/client/node-http-api.js';
import { SluiceError } from '../../../src/domain/errors.js';
import type { TaskId } from '../../../src/domain/ids.js';
import type { Scope } from '../../../src/domain/scopes.js';
import type { CreatedKey, KeyDraft } from '../../../src/protocol/keys-api.js';
import type { ClaimedTask } from '../../../src/protocol/workers-api.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const teams = ['red', 'green', 'blue'] as const;
const queuesOfTeam = 4;

interface Team {
  readonly name: string;
  readonly api: NodeHttpApi;
  readonly person: NodeHttpApi;
  readonly worker: NodeHttpApi;
  readonly submitted: TaskId[];
  readonly byPerson: TaskId[];
}

export const confinedKeys: Scenario = {
  name: 'confined-keys',
  about:
    'three teams with confined keys and workers over two servers: what each is given, sees and can change of the others',
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
    const admin = await new NodeHttpApi(fleet.url(0)).createKey({ name: 'ops', scopes: ['admin'] });
    const made = await Promise.all(teams.map((name) => makeTeam(fleet, admin, name)));
    await Promise.all(made.map((team) => submitAll(lab, team)));
    return [await probedRow(made), await listedRow(made), ...(await workedRows(made))];
  },
};

async function makeTeam(fleet: Fleet, admin: CreatedKey, name: string): Promise<Team> {
  const ops = new NodeHttpApi(fleet.url(0), { apiKey: admin.key });
  const at = async (server: number, scopes: readonly Scope[], draft: Partial<KeyDraft>) => {
    const { key } = await ops.createKey({ name, scopes, ...draft });
    return new NodeHttpApi(fleet.url(server), { apiKey: key });
  };
  const queues = [`${name}-*`];
  return {
    name,
    api: await at(0, ['admin'], { queues }),
    person: await at(1, ['submit', 'read'], { queues, ownTasks: true }),
    worker: await at(1, ['worker'], { queues }),
    submitted: [],
    byPerson: [],
  };
}

async function submitAll(
  lab: Lab,
  { name, api, person, submitted, byPerson }: Team,
): Promise<void> {
  const drafts = Array.from({ length: lab.size(2_000, 200) }, (_, n) => ({
    taskType: 'noop',
    queue: `${name}-${n % queuesOfTeam}`,
    parameters: { of: name },
  }));
  for (const [by, ids] of [[api, submitted] as const, [person, byPerson] as const]) {
    for (const outcome of await by.submitMany(drafts)) {
      if (outcome.kind === 'refused') throw new Error(outcome.detail);
      ids.push(outcome.receipt.taskId);
    }
  }
}

/** Each team tries to read, explain, change, cancel and replay tasks of the others, by their ids. */
async function probedRow(made: readonly Team[]): Promise<Row> {
  const told = new Map<string, number>();
  const probe = async (call: () => Promise<unknown>) => {
    const code = await call().then(() => 'let in', codeOf);
    told.set(code, (told.get(code) ?? 0) + 1);
  };
  for (const team of made) {
    const foreign = made.flatMap(({ name, submitted, byPerson }) =>
      name === team.name ? [] : [...submitted.slice(0, 20), ...byPerson.slice(0, 20)],
    );
    const colleagues = team.submitted.slice(0, 20);
    for (const taskId of foreign) {
      await probe(() => team.api.getTask(taskId));
      await probe(() => team.api.explainTask(taskId));
      await probe(() => team.api.changeTask(taskId, { priority: 'high' }));
      await probe(() => team.api.cancelTask(taskId));
      await probe(() => team.api.replayTask(taskId));
    }
    for (const taskId of [...foreign.slice(0, 20), ...colleagues]) {
      await probe(() => team.person.getTask(taskId));
      await probe(() => team.person.waitForTask(taskId, 1_000));
      await probe(() => team.person.changeTask(taskId, { priority: 'high' }));
      await probe(() => team.person.cancelTask(taskId));
    }
  }
  const probes = [...told.values()].reduce((sum, n) => sum + n, 0);
  const missing = told.get('task_not_found') ?? 0;
  return judged(
    {
      what: `reads and changes of tasks of others, by id: answered as tasks that do not exist, of ${count(probes)}`,
      measured: count(missing),
      numbers: { probes, missing },
    },
    count(probes),
    missing === probes,
  );
}

/** Whole lists, page by page. */
async function listedRow(made: readonly Team[]): Promise<Row> {
  let foreign = 0;
  let absent = 0;
  for (const { api, person, submitted, byPerson } of made) {
    const ofTeam = await listAll(api);
    const ofPerson = await listAll(person);
    const team = new Set([...submitted, ...byPerson]);
    const own = new Set(byPerson);
    foreign += [...ofTeam].filter((id) => !team.has(id)).length;
    foreign += [...ofPerson].filter((id) => !own.has(id)).length;
    absent += team.size - ofTeam.size + own.size - ofPerson.size;
  }
  return judged(
    {
      what: 'lists of all tasks: tasks of others in them; own tasks that are missing',
      measured: `${foreign}; ${absent}`,
      numbers: { foreign, absent },
    },
    '0; 0',
    foreign === 0 && absent === 0,
  );
}

async function listAll(api: NodeHttpApi): Promise<Set<TaskId>> {
  const found = new Set<TaskId>();
  let cursor: string | null = null;
  do {
    const page = await api.listTasks({}, { limit: 1_000, ...(cursor === null ? {} : { cursor }) });
    for (const { taskId } of page.items) found.add(taskId);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return found;
}

/** Workers that name no queue; a thief tries the ids of their workers meanwhile. */
async function workedRows(made: readonly Team[]): Promise<Row[]> {
  const ran = new Map<string, number>();
  let wrong = 0;
  const all = made.length * ((made[0]?.submitted.length ?? 0) + (made[0]?.byPerson.length ?? 0));
  let done = 0;
  const stolen: string[] = [];
  await Promise.all(
    made.map(async ({ name, worker }, index) => {
      const { workerId } = await worker.register({ capacity: 50 });
      const thief = made[(index + 1) % made.length]?.worker;
      while (done < all) {
        const { tasks } = await worker.poll(workerId, { availableCapacity: 50, waitMs: 1_000 });
        wrong += tasks.filter(({ queue }) => !queue.startsWith(`${name}-`)).length;
        const held = tasks.map(({ taskId }) => taskId);
        const beat = { currentLoad: 0, status: 'active', currentTasks: held } as const;
        for (const steal of [
          () => thief?.heartbeat(workerId, beat),
          () => thief?.poll(workerId, { availableCapacity: 1 }),
        ]) {
          stolen.push(await Promise.resolve(steal()).then(() => 'let in', codeOf));
        }
        await worker.report(workerId, tasks.map(completed));
        done += tasks.length;
        ran.set(name, (ran.get(name) ?? 0) + tasks.length);
      }
    }),
  );
  const refused = stolen.filter((code) => code === 'worker_unknown').length;
  return [
    judged(
      {
        what: `tasks done by workers that name no queue, of ${count(all)}; of another team`,
        measured: `${count(done)}; ${wrong}`,
        numbers: { done, wrong, ...Object.fromEntries(ran) },
      },
      `${count(all)}; 0`,
      done === all && wrong === 0,
    ),
    judged(
      {
        what: `polls and heartbeats with the worker id of another key: answered as an unknown worker, of ${count(stolen.length)}`,
        measured: count(refused),
        numbers: { refused, tried: stolen.length },
      },
      count(stolen.length),
      refused === stolen.length,
    ),
  ];
}

function completed({ taskId, lease }: ClaimedTask) {
  return { taskId, lease, status: 'completed', result: null } as const;
}

function codeOf(error: unknown): string {
  return error instanceof SluiceError ? error.code : String(error);
}
