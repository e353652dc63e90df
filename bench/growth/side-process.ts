import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { CrowdSizes } from './crowd-round.js';
import type { Values } from './measures.js';
import type { SteadySizes } from './steady-round.js';

export interface SideOptions {
  readonly databaseUrl: string;
  readonly redisUrl: string | null;
  /** Tasks that wait before the first round and after the last one. */
  readonly waiting: number;
  readonly queues: number;
  readonly round:
    ({ readonly kind: 'steady' } & SteadySizes) | ({ readonly kind: 'crowd' } & CrowdSizes);
}

export type Ask = 'round' | 'end';

export type Answer =
  | { readonly kind: 'filled' }
  | { readonly kind: 'measured'; readonly values: Values }
  /** After a collection: what is in use, without what the process has reserved. */
  | { readonly kind: 'held'; readonly megabytes: number };

const program = join(import.meta.dirname, 'side.ts');

/** The process of one case, seen from outside. It ends with us. */
export class SideProcess implements Disposable {
  readonly #child: ChildProcess;
  readonly #gone: Promise<undefined>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#gone = once(child, 'exit').then(() => undefined);
  }

  /** There when its tasks wait. */
  static async start(options: SideOptions): Promise<SideProcess> {
    const side = new SideProcess(
      fork(program, [JSON.stringify(options)], {
        execArgv: ['--import', import.meta.resolve('tsx'), '--expose-gc'],
        env: { ...process.env, NODE_ENV: 'production' },
      }),
    );
    await side.#answer('filled');
    return side;
  }

  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  async round(): Promise<Values> {
    this.#child.send('round' satisfies Ask);
    return (await this.#answer('measured')).values;
  }

  /** Megabytes that it held at last. */
  async end(): Promise<number> {
    this.#child.send('end' satisfies Ask);
    const { megabytes } = await this.#answer('held');
    await this.#gone;
    return megabytes;
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }

  async #answer<Kind extends Answer['kind']>(kind: Kind): Promise<Answer & { kind: Kind }> {
    const answered = once(this.#child, 'message').then(([answer]) => answer as Answer);
    const answer = await Promise.race([answered, this.#gone]);
    if (answer?.kind !== kind) throw new Error('A side ended before it answered');
    return answer as Answer & { kind: Kind };
  }
}
