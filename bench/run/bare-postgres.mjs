// Not a queue: the least that any queue has to ask of Postgres which has every task on disk before it is
// acknowledged, every claim before its handler runs, ends that are fenced by a lease, and results that are
// kept. Two connections, large batches, no order, no limits, no retries, nobody else. What it does in a
// second is what is there to be had on this machine.
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { nowMs } from './clock.mjs';
import { payload, range, result } from './task.mjs';

const connections = 2;
const insertsAtOnce = 1_000;
const claimsAtOnce = 500;

const schema = `
create schema bare;
create table bare.tasks (id uuid primary key, payload json not null, lease uuid);
create table bare.results (id uuid primary key, lease uuid not null, result json);`;

/** Tables without statistics: a plan that reads all of them would be chosen as soon as they are large. */
const session = `
set enable_seqscan = off;
set enable_hashjoin = off;
set enable_mergejoin = off;
set plan_cache_mode = force_generic_plan;`;

const insertSql = `
insert into bare.tasks (id, payload, lease)
select *
from rows from (unnest($1::uuid[]), json_array_elements($2::json), unnest($3::uuid[])) as draft`;

const claimSql = `
update bare.tasks task set lease = claim.lease
from unnest($1::uuid[], $2::uuid[]) as claim (id, lease)
where task.id = claim.id and task.lease is null`;

const completeSql = `
with done as (
  delete from bare.tasks task
  using rows from (unnest($1::uuid[], $2::uuid[]), json_array_elements($3::json))
    as report (id, lease, result)
  where task.id = report.id and task.lease = report.lease
  returning task.id, task.lease, report.result
)
insert into bare.results select * from done`;

export async function open({ postgresUrl }) {
  const clients = await Promise.all(range(0, connections).map(() => connect(postgresUrl)));
  await clients[0].query(schema);
  return new BarePostgres(clients);
}

async function connect(connectionString) {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(session);
  return client;
}

class BarePostgres {
  #clients;
  /** Tasks that wait, the oldest last. */
  #line = [];
  #gathered = [];
  #isWriting = false;
  #onStart = null;
  /** The last run of tasks that were written as claimed. */
  #running = Promise.resolve();

  constructor(clients) {
    this.#clients = clients;
  }

  async enqueue(count) {
    const tasks = range(0, count).map(toTask);
    const batches = inBatches(tasks, insertsAtOnce).values();
    const insertAll = async (client) => {
      for (const batch of batches) await insert(client, batch);
    };
    await Promise.all(this.#clients.map(insertAll));
    this.#line.push(...tasks.reverse());
  }

  /** Those that come while one is written go together. */
  submit(index) {
    return new Promise((resolve, reject) => {
      this.#gathered.push({ task: toTask(index), resolve, reject });
      if (!this.#isWriting) void this.#write();
    });
  }

  async #write() {
    this.#isWriting = true;
    // Calls that were made together go together.
    await undefined;
    const [client] = this.#clients;
    while (this.#gathered.length > 0) {
      const calls = this.#gathered.splice(0, insertsAtOnce);
      const tasks = calls.map(({ task }) => task);
      // Whoever waits has them at once, with the write that makes them.
      if (this.#onStart !== null) lease(tasks);
      try {
        await insert(client, tasks);
      } catch (error) {
        for (const { reject } of calls) reject(error);
        continue;
      }
      if (this.#onStart === null) this.#line.unshift(...tasks.reverse());
      else this.#running = this.#run(this.#clients[1], tasks);
      for (const { resolve } of calls) resolve();
    }
    this.#isWriting = false;
  }

  async startWorker(onStart) {
    this.#onStart = onStart;
    const loops = this.#clients.map((client) => this.#workOff(client));
    return async () => {
      await Promise.all([...loops, this.#running]);
      this.#onStart = null;
    };
  }

  async #workOff(client) {
    while (this.#line.length > 0) {
      const tasks = this.#line.splice(-claimsAtOnce).reverse();
      lease(tasks);
      await client.query({ name: 'claim', text: claimSql, values: held(tasks) });
      await this.#run(client, tasks);
    }
  }

  async #run(client, tasks) {
    for (const { index } of tasks) this.#onStart(index, nowMs());
    const results = `[${tasks.map(() => JSON.stringify(result)).join(',')}]`;
    const values = [...held(tasks), results];
    await client.query({ name: 'complete', text: completeSql, values });
  }

  async isDrained() {
    const [client] = this.#clients;
    const { rows } = await client.query('select exists (select from bare.tasks) as living');
    return !rows[0].living;
  }

  async close() {
    await Promise.all(this.#clients.map((client) => client.end()));
  }
}

function toTask(index) {
  return { id: uuidv7(), index, payload: JSON.stringify(payload(index)), lease: null };
}

function lease(tasks) {
  for (const task of tasks) task.lease = randomUUID();
}

function insert(client, tasks) {
  const leases = tasks[0].lease === null ? null : column(tasks, (task) => task.lease);
  const payloads = `[${tasks.map((task) => task.payload).join(',')}]`;
  const values = [column(tasks, (task) => task.id), payloads, leases];
  return client.query({ name: 'insert', text: insertSql, values });
}

function held(tasks) {
  return [column(tasks, (task) => task.id), column(tasks, (task) => task.lease)];
}

function column(tasks, pick) {
  return `{${tasks.map(pick).join(',')}}`;
}

function inBatches(items, size) {
  return range(0, Math.ceil(items.length / size)).map((n) => items.slice(n * size, (n + 1) * size));
}
