import { connect } from '../../src/client/connect.js';
import { defineTask } from '../../src/client/define-task.js';
import type { Sluice } from '../../src/client/sluice.js';
import {
  counterLength,
  counterPositions,
  runPosition,
  waitPosition,
  type CounterName,
} from '../../src/domain/counters.js';
import { pino } from 'pino';
import { silentLog } from '../../src/runtime/log.js';
import { serve, type RunningServer } from '../../src/server/serve.js';
import { NonRetriableError, RateLimitedError } from '../../src/worker/errors.js';
import { startPostgres } from '../../test/support/services/postgres-server.js';
import { startRedis } from '../../test/support/services/redis-server.js';
import { LabDatabase } from '../shared/database.js';
import { seededRandom } from '../shared/measure.js';

/** Two servers with queues, work, mishaps and the numbers of a day, to look at. */
export interface FilledDemo {
  readonly url: string;
  readonly adminKey: string;
  readonly sluice: Sluice;
  close(): Promise<void>;
}

const models = ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet', 'claude-haiku', 'mistral-large'] as const;
const others = ['embeddings', 'whisper', 'ocr', 'webhooks', 'nightly-reports', 'translations'];

const random = seededRandom(1);
const between = (least: number, most: number) => least + random() * (most - least);

const call = defineTask({
  type: 'model-call',
  run: async (input: { n?: number }, { signal }) => {
    const takesMs = between(300, 4_000);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, takesMs);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(new Error('cancelled'));
      });
    });
    return { text: 'A short summary of the document.', document: input.n ?? 0, tokens: 812 };
  },
});

const broken = defineTask({
  type: 'parse-invoice',
  run: (input: { n?: number }) => {
    if ((input.n ?? 0) % 3 === 0) throw new NonRetriableError('The document has no pages');
    throw new TypeError("Cannot read properties of undefined (reading 'total')");
  },
});

const busy = defineTask({
  type: 'transcribe',
  run: () => {
    throw new RateLimitedError(20, 'Rate limit reached for whisper-1: 50 requests a minute');
  },
});

export async function openFilledDemo(): Promise<FilledDemo> {
  const [postgres, redis] = await Promise.all([startPostgres({ durable: false }), startRedis()]);
  const database = await LabDatabase.create(postgres.url);
  const start = () =>
    serve({
      host: '127.0.0.1',
      port: 0,
      database: { kind: 'postgres', url: database.url },
      redisUrl: redis.url,
      environment: 'staging',
      alertIntervalMs: 500,
      log: pino({ level: 'error' }, process.stderr),
    });
  const first = await start();
  const second = await start();
  const { key: adminKey } = await first.engine.createKey({ name: 'Ada', scopes: ['admin'] });
  const sluice = connect(second.url, { apiKey: adminKey });
  await remember(database);
  await fill(sluice, first);
  return {
    url: first.url,
    adminKey,
    sluice,
    close: async () => {
      await sluice.close();
      await Promise.all([first.close(), second.close()]);
      await database.drop();
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}

async function fill(sluice: Sluice, { engine }: RunningServer): Promise<void> {
  await engine.createKey({ name: 'web-app', scopes: ['submit', 'read'] });
  await engine.createKey({ name: 'workers', scopes: ['worker'] });
  await engine.createKey({ name: 'grafana', scopes: ['read'], queues: ['gpt-*'] });
  await sluice.api.putLimit('openai', { unit: 'requests', rate: 500, perSeconds: 60 });
  await Promise.all(
    models.map((queue, index) =>
      sluice.queue(queue).change({
        limits: { rpm: 60 * (index + 1), tpm: 90_000 * (index + 1) },
        maxConcurrency: 8 + index,
      }),
    ),
  );
  await sluice.queue('nightly-reports').pause(new Date(Date.now() + 5 * 3_600_000));
  await submitAll(sluice);
  for (const [index, handlers] of [[call, broken, busy], [call], [call]].entries()) {
    const name = `worker-${String(index + 1)}`;
    const worker = sluice.worker(handlers, { concurrency: 20, name, log: silentLog });
    await worker.start();
  }
  await sluice.api.putAlert('queue_depth', { threshold: 50, forSeconds: 0 });
}

async function submitAll(sluice: Sluice): Promise<void> {
  const options = (queue: string, n: number) => ({
    queue,
    priority: (['low', 'medium', 'high'] as const)[n % 3] ?? 'medium',
    userId: ['ada', 'grace', 'linus'][n % 3] ?? 'ada',
    tags: n % 5 === 0 ? ['nightly'] : [],
    ...(queue.includes('-') ? { cost: { tokens: 900 } } : {}),
  });
  const submit = async (task: typeof call, queue: string, count: number) => {
    await sluice.submitMany(
      task,
      Array.from({ length: count }, (_, n) => ({
        input: { n, prompt: 'Summarise the attached document in two sentences.', model: queue },
        options: options(queue, n),
      })),
    );
  };
  // As many as keep the first one busy while pictures are taken.
  for (const [index, queue] of models.entries()) {
    await submit(call, queue, index === 0 ? 900 : 80 + 60 * index);
  }
  for (const queue of others) await submit(call, queue, 25);
  const retries = { maxRetries: 0 };
  await sluice.submitMany(
    broken,
    Array.from({ length: 14 }, (_, n) => ({
      input: { n },
      options: { ...options('invoices', n), ...retries },
    })),
  );
  await sluice.submitMany(
    busy,
    Array.from({ length: 6 }, () => ({ input: {}, options: { queue: 'whisper' } })),
  );
}

/** Counts of the last hour and day, as servers that ran would have left them. */
async function remember(database: LabDatabase): Promise<void> {
  const spans = [
    { stepSeconds: 5, steps: 720 },
    { stepSeconds: 60, steps: 1_440 },
    { stepSeconds: 3_600, steps: 168 },
  ];
  const nowMs = Date.now();
  for (const { stepSeconds, steps } of spans) {
    const rows = [];
    for (let step = 1; step <= steps; step += 1) {
      const stepMs = stepSeconds * 1_000;
      const atMs = (Math.floor(nowMs / stepMs) - step) * stepMs;
      const each = models.map((queue, index) => ({
        queue,
        counts: countsOf(nowMs, atMs, stepSeconds, index),
      }));
      const total = each[0]?.counts.map((_, position) =>
        each.reduce((sum, { counts }) => sum + (counts[position] ?? 0), 0),
      );
      for (const { queue, counts } of [...each, { queue: '', counts: total ?? [] }]) {
        rows.push({ step: stepSeconds, at: new Date(atMs).toISOString(), queue, counts });
      }
    }
    await database.query(
      `insert into sluice.counters (step_seconds, at, queue, counts)
       select step, at, queue, array(select jsonb_array_elements_text(counts)::bigint)
       from jsonb_to_recordset($1::jsonb) as row (step int, at timestamptz, queue text, counts jsonb)
       on conflict do nothing`,
      [JSON.stringify(rows)],
    );
  }
}

/** More by day than by night, and an outage of some minutes. */
function countsOf(nowMs: number, atMs: number, stepSeconds: number, index: number): number[] {
  const counts = Array.from({ length: counterLength }, () => 0);
  const day = 1 + 0.6 * Math.sin((atMs / 86_400_000) * 2 * Math.PI);
  const wave = 1 + 0.25 * Math.sin(atMs / 400_000 + index);
  const perSecond = (index + 1) * 0.9 * day * wave * between(0.8, 1.2);
  const started = Math.round(perSecond * stepSeconds);
  const minutesAgo = Math.floor((nowMs - atMs) / 60_000);
  const isOutage = minutesAgo % 600 >= 38 && minutesAgo % 600 < 41;
  const add = (name: CounterName, value: number) => {
    counts[counterPositions[name]] = Math.round(value);
  };
  add('submitted', started * between(0.9, 1.1));
  add('started', isOutage ? started * 0.3 : started);
  add('completed', isOutage ? started * 0.2 : started * 0.98);
  add('failed', isOutage ? started * 0.1 : started * 0.01);
  add('rate_limited', isOutage ? started * 0.15 : 0);
  add('dead_letter', isOutage ? started * 0.02 : 0);
  add('tokens_reserved', started * 900);
  add('tokens_used', started * between(700, 850));
  const waits = isOutage ? [5_000, 15_000, 40_000] : [200, 900, 4_000];
  waits.forEach((waitMs, place) => {
    const position = waitPosition('medium', waitMs);
    counts[position] = (counts[position] ?? 0) + Math.round(started / (place + 1));
  });
  [800, 2_200, 4_500].forEach((runMs, place) => {
    const position = runPosition(runMs);
    counts[position] = (counts[position] ?? 0) + Math.round(started / (place + 1));
  });
  return counts;
}
