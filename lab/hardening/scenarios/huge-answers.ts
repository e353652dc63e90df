import { readFileSync } from 'node:fs';
import type { TaskPageWire } from '../../../src/protocol/tasks-schema.js';
import type { PollAnswerWire, RegisteredWire } from '../../../src/protocol/workers-schema.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, ms, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const heapMegabytes = 512;
const mib = 1024 * 1024;
/** An answer ends with the first task that takes it past 8 MiB. */
const mostBytes = 8 * mib + 1.5 * mib;
/** What Node takes besides its heap of 512 MB, and what is under way in it. */
const mostResidentMb = 900;

export const hugeAnswers: Scenario = {
  name: 'huge-answers',
  about: `lists, tasks and polls whose payloads are far larger than a server with ${heapMegabytes} MB of heap`,
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, {
      servers: 1,
      ready: 'memory',
      nodeArgs: [`--max-old-space-size=${heapMegabytes}`],
    });
    const results = lab.size(300, 60);
    const ids = await seedResults(fleet, results);
    const url = fleet.url(0);
    const rows = [
      await lightRow(url, results),
      await listRow(url, results),
      await taskRow(url, ids, lab.size(500, 50)),
      await pollRow(lab, fleet),
    ];
    const residentMb = peakResidentMb(fleet.serverPids[0] ?? 0);
    const isAlive = (await fetch(`${url}/readyz`)).ok;
    return [
      ...rows,
      judged(
        {
          what: 'the same server still answers afterwards; the most memory that it had',
          measured: `${isAlive ? 'yes' : 'no'}; ${Math.round(residentMb)} MB`,
          numbers: { residentMb },
        },
        `yes; ≤ ${mostResidentMb} MB`,
        isAlive && residentMb <= mostResidentMb,
      ),
    ];
  },
};

async function lightRow(url: string, results: number): Promise<Row> {
  const { bytes, tookMs, pages } = await readAll(`${url}/api/v1/tasks?status=completed&limit=1000`);
  return judged(
    {
      what: `a list of ${results} tasks with results of 1 MiB, without asking for them: bytes, time, pages`,
      measured: `${count(bytes)}; ${ms(tookMs)}; ${pages.length}`,
      numbers: { bytes, tookMs },
    },
    `≤ ${count(results * 2_000)} bytes`,
    bytes <= results * 2_000 && itemsOf(pages) === results,
  );
}

async function listRow(url: string, results: number): Promise<Row> {
  const list = `${url}/api/v1/tasks?status=completed&limit=1000&include=parameters,result`;
  const readers = await Promise.all(Array.from({ length: 5 }, () => readAll(list)));
  const largest = Math.max(...readers.map(({ largest: bytes }) => bytes));
  const complete = readers.filter(({ pages }) => itemsOf(pages) === results).length;
  return judged(
    {
      what: 'the same list with results, read to its end by five at once: those who got all, the largest page',
      measured: `${complete}; ${(largest / mib).toFixed(1)} MiB`,
      numbers: { complete, largest },
    },
    `5; ≤ ${(mostBytes / mib).toFixed(1)} MiB`,
    complete === 5 && largest <= mostBytes,
  );
}

async function taskRow(url: string, ids: readonly string[], calls: number): Promise<Row> {
  const statuses = await Promise.all(
    Array.from({ length: calls }, async (_, n) => {
      const answer = await fetch(`${url}/api/v1/tasks/${ids[n % ids.length] ?? ''}`);
      await answer.arrayBuffer();
      return answer.status === 503 && answer.headers.get('retry-after') === null
        ? 0
        : answer.status;
    }),
  );
  const answered = statuses.filter((status) => status === 200).length;
  const refused = statuses.filter((status) => status === 503).length;
  return judged(
    {
      what: `${calls} tasks with 1 MiB each, at once: 200; 503 with Retry-After; anything else`,
      measured: `${answered}; ${refused}; ${calls - answered - refused}`,
      numbers: { answered, refused },
    },
    'others: 0',
    answered > 0 && answered + refused === calls,
  );
}

async function pollRow(lab: Lab, fleet: Fleet): Promise<Row> {
  const tasks = lab.size(5_000, 200);
  await seedInputs(fleet, tasks);
  const workers = `${fleet.url(0)}/internal/workers`;
  const { worker_id: id } = await post<RegisteredWire>(`${workers}/register`, { capacity: 5_000 });
  let [given, largest, most] = [0, 0, 0];
  for (let polls = 0; polls < 10; polls += 1) {
    await post(`${workers}/${id}/heartbeat`, { current_load: given, status: 'active' });
    const answers = await Promise.all(
      Array.from({ length: 5 }, () =>
        postText(`${workers}/${id}/poll`, { available_capacity: 5_000, wait_seconds: 5 }),
      ),
    );
    for (const text of answers) {
      const got = (JSON.parse(text) as PollAnswerWire).tasks.length;
      given += got;
      most = Math.max(most, got);
      largest = Math.max(largest, text.length);
    }
    if (given >= tasks) break;
  }
  const [held] = await fleet.database.query<{ count: number }>(
    `select count(*)::integer as count from sluice.tasks where status = 'executing'`,
  );
  const claimed = held?.count ?? -1;
  return judged(
    {
      what: `polls for 5,000 of ${count(tasks)} tasks of 200 kB, five at once: given; claimed in Postgres; the largest answer`,
      measured: `${given}; ${claimed}; ${(largest / mib).toFixed(1)} MiB`,
      numbers: { given, claimed, largest, most },
    },
    `as many claimed as given; ≤ ${(mostBytes / mib).toFixed(1)} MiB`,
    given > 0 && given === claimed && largest <= mostBytes && most <= 1_000,
  );
}

interface ReadList {
  readonly pages: readonly number[];
  readonly bytes: number;
  readonly largest: number;
  readonly tookMs: number;
}

/** Asks again, as it is told, when the server has no room for the answer. */
async function readAll(url: string): Promise<ReadList> {
  const began = performance.now();
  const pages: number[] = [];
  let [bytes, largest] = [0, 0];
  let cursor: string | null = null;
  do {
    const answer = await fetch(cursor === null ? url : `${url}&cursor=${cursor}`);
    const text = await answer.text();
    if (answer.status === 503) continue;
    if (!answer.ok) throw new Error(`A list was answered ${answer.status}: ${text.slice(0, 200)}`);
    const page = JSON.parse(text) as TaskPageWire;
    pages.push(page.items.length);
    bytes += text.length;
    largest = Math.max(largest, text.length);
    cursor = page.next_cursor;
  } while (cursor !== null || pages.length === 0);
  return { pages, bytes, largest, tookMs: performance.now() - began };
}

function itemsOf(pages: readonly number[]): number {
  return pages.reduce((sum, items) => sum + items, 0);
}

const idOf = (n: string, ms: string) =>
  `(lpad(to_hex((extract(epoch from now()) * 1000)::bigint + ${ms}), 12, '0') || '70008000' ||
    lpad(to_hex(${n}), 12, '0'))::uuid`;

async function seedResults(fleet: Fleet, results: number): Promise<string[]> {
  const rows = await fleet.database.query<{ id: string }>(
    `insert into sluice.task_history
       (id, seq, queue, task_type, capabilities, priority, status, created_at, eligible_at, ended_at,
        timeout_seconds, max_retries, retry_count, attempt, deferrals, returns, halts_workflow, tags,
        past_attempts, result)
     select ${idOf('n', '0')}, n, 'large', 'large', '{}', 1, 'completed', now(), now(), now(),
       600, 3, 0, 1, 0, 0, true, '{}', '{}',
       to_json(repeat(md5(n::text), 32767))
     from generate_series(1, $1::integer) n returning id`,
    [results],
  );
  return rows.map(({ id }) => id);
}

/** Due at once: the feeder finds them. */
async function seedInputs(fleet: Fleet, tasks: number): Promise<void> {
  await fleet.database.query(
    `with made as (
       insert into sluice.tasks
         (id, queue, task_type, priority, status, waits_for, created_at, eligible_at, run_at,
          timeout_seconds, max_retries)
       select ${idOf('n', '1000')}, 'prompts', 'large', 1, 'pending', 'time', now(), now(), now(), 600, 3
       from generate_series(1, $1::integer) n returning id
     )
     insert into sluice.task_inputs (task_id, parameters)
     select id, json_build_object('text', repeat(md5(id::text), 6250)) from made`,
    [tasks],
  );
}

async function postText(url: string, body: object): Promise<string> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${url} was answered ${answer.status}: ${text.slice(0, 200)}`);
  return text;
}

async function post<Wire>(url: string, body: object): Promise<Wire> {
  return JSON.parse(await postText(url, body)) as Wire;
}

function peakResidentMb(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1] ?? NaN) / 1024;
}
