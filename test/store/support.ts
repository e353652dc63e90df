import { afterAll, beforeAll, beforeEach, describe } from 'vitest';

import type { Database } from '../../src/store/database.js';
import { migrate } from '../../src/store/migrate.js';
import { ensurePartitions } from '../../src/store/partitions.js';
import { openPgDatabase, type PgDatabaseOptions } from '../../src/store/pg-database.js';
import { openPgliteDatabase } from '../../src/store/pglite-database.js';
import { Gate } from '../support/gate.js';
import { freshPglite } from '../support/pglite.js';
import { createTestDatabase } from '../support/postgres.js';

/** The same tests on embedded Postgres and on a server, each with an empty store (R-ST2). */
export function describeOnEveryDatabase(name: string, body: (db: () => Database) => void): void {
  describe(`${name} on PGlite`, () => {
    let db: Database;
    beforeAll(async () => {
      db = await sharedPglite();
    });
    beforeEach(() => empty(db));
    body(() => db);
  });
  describeOnPostgres(name, (postgres) => body(() => postgres().db));
}

/** For tests that change the schema itself: nobody else sees these. */
export function describeOnDatabasesOfItsOwn(
  name: string,
  body: (db: () => Database) => void,
): void {
  describe(`${name} on PGlite`, () => {
    let db: Database;
    beforeAll(async () => {
      db = await openPglite();
    });
    beforeEach(() => empty(db));
    afterAll(() => db.close());
    body(() => db);
  });
  describeOnPostgres(name, (postgres) => body(() => postgres().db));
}

let pglite: Promise<Database> | undefined;

/** One for all the files that share a process: to start one takes a second. It ends with the process. */
function sharedPglite(): Promise<Database> {
  pglite ??= openPglite();
  return pglite;
}

async function openPglite(): Promise<Database> {
  return prepared(await openPgliteDatabase(freshPglite('store')));
}

export interface TestPostgres {
  readonly db: Database;
  readonly url: string;
  /** Another pool on the same database, as another server process has; closed after the tests. */
  open(options?: Partial<PgDatabaseOptions>): Promise<Database>;
  /** One that waits for a lock as long as it takes: only a deadlock ends a statement in a race. */
  openPatient(poolSize?: number): Promise<Database>;
}

/** Races need several connections, which PGlite has not. */
export function describeOnPostgres(
  name: string,
  body: (postgres: () => TestPostgres) => void,
): void {
  describe(`${name} on Postgres`, () => {
    let postgres: TestPostgres;
    let drop: () => Promise<void>;
    const opened: Database[] = [];

    beforeAll(async () => {
      const database = await createTestDatabase('store');
      drop = () => database.drop();
      const open = async (options: Partial<PgDatabaseOptions> = {}): Promise<Database> => {
        const db = await openPgDatabase({ url: database.url, ...options });
        opened.push(db);
        return db;
      };
      const openPatient = async (poolSize = 4) => patient(await open({ poolSize }), poolSize);
      postgres = { db: await prepared(await open()), url: database.url, open, openPatient };
    });
    beforeEach(() => empty(postgres.db));
    afterAll(async () => {
      await Promise.all(opened.map((db) => db.close()));
      await drop();
    });
    body(() => postgres);
  });
}

/** Told to each of its connections: none of them is free before the last one knows. */
async function patient(db: Database, poolSize: number): Promise<Database> {
  let told = 0;
  const areAllTold = new Gate();
  const tell = () =>
    db.transaction(async (tx) => {
      await tx.run(`set lock_timeout = '60s'`);
      told += 1;
      if (told === poolSize) areAllTold.open();
      await areAllTold.passed;
    });
  await Promise.all(Array.from({ length: poolSize }, tell));
  await db.ordered.query(`set lock_timeout = '60s'`);
  return db;
}

async function prepared(db: Database): Promise<Database> {
  await migrate(db);
  await ensurePartitions(db, 2, null);
  return db;
}

/** Not by truncate, which makes every table and index anew: twenty times as much work. */
async function empty(db: Database): Promise<void> {
  await db.run(`
    delete from sluice.tasks;
    delete from sluice.task_inputs;
    delete from sluice.task_history;
    delete from sluice.idempotency_keys;
    delete from sluice.workflows;
    delete from sluice.queues;
    delete from sluice.unsettled;
    delete from sluice.lanes;
    delete from sluice.lane_counts;
    delete from sluice.limits;
    delete from sluice.workers;
    delete from sluice.servers;
    delete from sluice.serving;
    delete from sluice.scaling;
    delete from sluice.api_keys;
    delete from sluice.submissions;
    delete from sluice.bucket_levels;
    delete from sluice.counters;
    delete from sluice.audit;
    delete from sluice.dead_letters;
    delete from sluice.dead_letter_changes;
    delete from sluice.dead_letter_patterns;
    delete from sluice.dead_letter_counts;
    delete from sluice.dead_letter_hours;
    delete from sluice.turns;
    delete from sluice.pushbacks;
    delete from sluice.counting_processes;
    delete from sluice.alert_evaluation;
    delete from sluice.alert_settings;
    delete from sluice.alerts;
    delete from sluice.webhook_deliveries;
    update sluice.generation set number = 0;
    delete from sluice.admission where scope <> '';
    delete from sluice.departures where scope <> '';
    update sluice.admission set admitted = 0, ended_before = 0;
    update sluice.departures set ended = 0 where ended <> 0;
  `);
}
