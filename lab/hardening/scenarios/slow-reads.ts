import { setTimeout as delay } from 'node:timers/promises';
import type { RegisteredWire } from '../../../src/protocol/workers-schema.js';
import type { Lab } from '../../shared/lab.js';
import { count, judged, ms, seconds, type Row, type Scenario } from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';

const readers = 30;
/** A statement has 5 s, and may wait as long for its turn. */
const mostReadMs = 11_000;
const mostBeatMs = 2_000;

interface Answer {
  readonly status: number;
  readonly tookMs: number;
}

export const slowReads: Scenario = {
  name: 'slow-reads',
  about: `${readers} people read dead letters by a filter that matches nothing, again and again, while a worker beats`,
  run: async (lab) => {
    await using fleet = await Fleet.start(lab.postgresUrl, { servers: 1, ready: 'memory' });
    const letters = lab.size(200_000, 20_000);
    await seedDeadLetters(fleet, letters);
    const forMs = lab.size(20_000, 2_000);
    return [
      ...(await storm(
        fleet,
        `${count(letters)} dead letters, no such code`,
        '/api/v1/dlq?code=nope',
        forMs,
      )),
      ...(await storm(
        fleet,
        `${count(letters)} dead letters, no such code in that queue`,
        '/api/v1/dlq?code=COMMON&queue=nope',
        forMs,
      )),
      ...(await hopelessReads(lab, fleet)),
    ];
  },
};

async function storm(fleet: Fleet, what: string, path: string, forMs: number): Promise<Row[]> {
  const { reads, beats } = await readAndBeat(fleet, path, forMs);
  return [
    judged(
      {
        what: `${what}: reads that were not answered 200, of ${count(reads.length)}; the slowest`,
        measured: `${notOk(reads)}; ${ms(slowest(reads))}`,
        numbers: { reads: reads.length, notOk: notOk(reads), slowestMs: slowest(reads) },
      },
      '0; ≤ 5 s',
      notOk(reads) === 0 && slowest(reads) <= 5_000,
    ),
    beatRow(what, beats),
  ];
}

/** Every look at the code of an error takes ten seconds, as on a disk that is far too slow. */
async function hopelessReads(lab: Lab, fleet: Fleet): Promise<Row[]> {
  await fleet.database.query(
    `create or replace function sluice.error_code(error json) returns text
     language plpgsql immutable strict as $$
     begin perform pg_sleep(10); return 'COMMON'; end $$`,
  );
  const what = 'reads that would take for ever';
  const path = '/api/v1/dlq?code=COMMON';
  const { reads, beats } = await readAndBeat(fleet, path, lab.size(20_000, 6_000));
  const refused = reads.filter(({ status }) => status === 503).length;
  return [
    judged(
      {
        what: `${what}: those answered 503, of ${reads.length}; the slowest`,
        measured: `${refused}; ${seconds(slowest(reads))}`,
        numbers: { reads: reads.length, refused, slowestMs: slowest(reads) },
      },
      `all; ≤ ${seconds(mostReadMs)}`,
      refused === reads.length && slowest(reads) <= mostReadMs,
    ),
    beatRow(what, beats),
  ];
}

function beatRow(what: string, beats: readonly Answer[]): Row {
  return judged(
    {
      what: `${what}: heartbeats meanwhile that were not answered 200, of ${beats.length}; the slowest`,
      measured: `${notOk(beats)}; ${ms(slowest(beats))}`,
      numbers: { beats: beats.length, notOk: notOk(beats), slowestMs: slowest(beats) },
    },
    `0; ≤ ${ms(mostBeatMs)}`,
    beats.length > 0 && notOk(beats) === 0 && slowest(beats) <= mostBeatMs,
  );
}

async function readAndBeat(fleet: Fleet, path: string, forMs: number) {
  const url = fleet.url(0);
  const registered = await call(`${url}/internal/workers/register`, { capacity: 100 });
  const { worker_id: id } = JSON.parse(registered.text) as RegisteredWire;
  const endsMs = performance.now() + forMs;
  const reads: Answer[] = [];
  const beats: Answer[] = [];
  const reader = async () => {
    while (performance.now() < endsMs) reads.push(await call(`${url}${path}`));
  };
  const beating = async () => {
    const beat = { current_load: 0, status: 'active', current_tasks: [] };
    while (performance.now() < endsMs) {
      beats.push(await call(`${url}/internal/workers/${id}/heartbeat`, beat));
      await delay(200);
    }
  };
  await Promise.all([...Array.from({ length: readers }, reader), beating()]);
  return { reads, beats };
}

async function call(url: string, body?: object): Promise<Answer & { readonly text: string }> {
  const began = performance.now();
  const answer = await fetch(url, {
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  });
  const text = await answer.text();
  return { status: answer.status, tookMs: performance.now() - began, text };
}

function notOk(answers: readonly Answer[]): number {
  return answers.filter(({ status }) => status !== 200).length;
}

function slowest(answers: readonly Answer[]): number {
  return Math.max(...answers.map(({ tookMs }) => tookMs));
}

async function seedDeadLetters(fleet: Fleet, letters: number): Promise<void> {
  await fleet.database.query(
    `insert into sluice.tasks
       (id, queue, task_type, priority, status, created_at, eligible_at, ended_at, timeout_seconds,
        max_retries, error)
     select (lpad(to_hex(n), 12, '0') || '7000' || '8000' || repeat('0', 12))::uuid, 'q1', 'chat', 1,
       'dead_letter', now(), now(), now(), 600, 3,
       '{"code":"COMMON","message":"it broke","retriable":true}'
     from generate_series(1, $1::integer) n`,
    [letters],
  );
}
