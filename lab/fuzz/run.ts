import fc from 'fast-check';
import { scopes } from '../../src/domain/scopes.js';
import { routesOf, type OpenApi, type Route } from './document.js';
import { Judge } from './judge.js';
import { KnownIds } from './known.js';
import { anyRequest, type FuzzRequest } from './requests.js';
import { Sender, type FuzzAnswer } from './send.js';
import { Tally } from './tally.js';

export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  /** How many at once. */
  readonly parallel: number;
  readonly onBatch?: (done: number) => Promise<void> | void;
}

const batchSize = 500;
/** Enough to see what is wrong. */
const maxFaults = 20;

/** The same seed sends the same requests, but for the ids that the server gives. */
export async function fuzz(base: string, options: FuzzOptions): Promise<Tally> {
  using sender = new Sender(base, options.parallel);
  const document = await readDocument(sender);
  const routes = routesOf(document);
  const run = new Run(sender, document, routes);
  await run.begin();
  for (let done = 0; done < options.requests;) {
    const count = Math.min(batchSize, options.requests - done);
    const seed = options.seed + done;
    await run.batch(fc.sample(anyRequest(document, routes), { numRuns: count, seed }), options);
    done += count;
    await options.onBatch?.(done);
    if (run.tally.faults.length >= maxFaults) break;
  }
  await run.finish();
  return run.tally;
}

class Run {
  readonly tally: Tally;
  readonly #sender: Sender;
  readonly #judge: Judge;
  readonly #known = new KnownIds();
  #key = '';

  constructor(sender: Sender, document: OpenApi, routes: readonly Route[]) {
    this.#sender = sender;
    this.#judge = new Judge(document, routes);
    this.tally = new Tally(routes);
  }

  /** Something for requests to be about: tasks in many states, and workers that hold some. */
  async begin(): Promise<void> {
    // The requests may make keys, and from the first one on every call needs one.
    const { key } = await this.#post('/api/v1/keys', { name: 'fuzz', scopes: [...scopes] });
    this.#key = String(key);
    for (let n = 0; n < 4; n += 1) {
      const { worker_id } = await this.#post('/internal/workers/register', { capacity: 100 });
      for (let task = 0; task < 6; task += 1) {
        await this.#post('/api/v1/tasks', { task_type: 'chat', queue: 'fuzz', max_retries: 1 });
      }
      const poll = { available_capacity: 3, queues: ['fuzz'] };
      await this.#post(`/internal/workers/${String(worker_id)}/poll`, poll);
    }
  }

  async batch(requests: readonly FuzzRequest[], { parallel }: FuzzOptions): Promise<void> {
    const waiting = requests.values();
    const lane = async () => {
      for (const request of waiting) await this.#one(request);
    };
    await Promise.all(Array.from({ length: parallel }, lane));
  }

  /** It still works: a task is submitted, run and completed. */
  async finish(): Promise<void> {
    const queue = `after-${Date.now()}`;
    const { worker_id } = await this.#post('/internal/workers/register', {});
    const { task_id } = await this.#post('/api/v1/tasks', { task_type: 'chat', queue });
    const worker = `/internal/workers/${String(worker_id)}`;
    const polled = await this.#post(`${worker}/poll`, {
      available_capacity: 1,
      wait_seconds: 30,
      queues: [queue],
    });
    const [task] = polled.tasks as { task_id: string; lease: string }[];
    const report = { task_id, lease: task?.lease, status: 'completed', result: { ok: true } };
    const { accepted } = await this.#post(`${worker}/result`, report);
    if (accepted !== true) this.tally.fault('afterwards', 'no task could be run to its end');
  }

  async #one(request: FuzzRequest): Promise<void> {
    const filled = this.#filled(request);
    try {
      const answer = await this.#sender.send(filled);
      this.#known.learn(answer.body);
      this.tally.count(request.route, answer);
      for (const fault of this.#judge.faults(filled, answer)) {
        this.tally.fault(describe(filled, answer), fault);
      }
    } catch (error) {
      this.tally.fault(describe(filled, null), String(error));
    }
  }

  #filled(request: FuzzRequest): FuzzRequest {
    const { url, body } = request;
    return {
      ...request,
      headers: this.#withKey(request.headers),
      url: this.#known.fill(url),
      body: body?.includes('~')
        ? Buffer.from(this.#known.fill(body.toString('latin1')), 'latin1')
        : body,
    };
  }

  /** Unless it brings one of its own. */
  #withKey(headers: FuzzRequest['headers']): FuzzRequest['headers'] {
    if (this.#key === '' || headers.some(([name]) => name === 'authorization')) return headers;
    return [['authorization', `Bearer ${this.#key}`], ...headers];
  }

  async #post(url: string, body: object): Promise<Record<string, unknown>> {
    const answer = await this.#sender.send({
      method: 'POST',
      url,
      headers: this.#withKey([['content-type', 'application/json']]),
      body: Buffer.from(JSON.stringify(body)),
      isChunked: false,
    });
    if (answer.status >= 300) throw new Error(`${url} was refused: ${answer.body}`);
    this.#known.learn(answer.body);
    return JSON.parse(answer.body) as Record<string, unknown>;
  }
}

async function readDocument(sender: Sender): Promise<OpenApi> {
  const answer = await sender.send({
    method: 'GET',
    url: '/openapi.json',
    headers: [],
    body: null,
    isChunked: false,
  });
  return JSON.parse(answer.body) as OpenApi;
}

function describe({ method, url, headers, body }: FuzzRequest, answer: FuzzAnswer | null): string {
  const sent = body === null ? '' : ` ${JSON.stringify(body.subarray(0, 600).toString())}`;
  const said = answer === null ? '' : ` → ${answer.status} ${answer.body.slice(0, 600)}`;
  return `${method} ${url.slice(0, 300)} ${JSON.stringify(headers)}${sent}${said}`;
}
