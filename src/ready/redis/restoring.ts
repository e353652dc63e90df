import { randomUUID } from 'node:crypto';
import type { Configuration, ReadyState } from '../ready-queue.js';
import {
  afterFirst,
  inParts,
  isNothing,
  packConfiguration,
  type StartingTokens,
} from './packed-settings.js';
import { listOf } from './replies.js';
import { lineStart } from '../left-line.js';
import { inChunks } from './in-chunks.js';
import { placeArguments } from './line-arguments.js';
import { RedisAwayError, type ScriptRunner } from './script-runner.js';
import { scripts } from './scripts.js';

const renewEveryMs = 3_000;
/** Whoever asked for the restore and does not come back with it is not waited for any longer. */
const renewForMs = 60_000;
const atOnce = 1_000;

/** The steps of a restore. One process at a time goes them; between two of them it may lose its place. */
export class Restoring {
  readonly #runner: ScriptRunner;
  #token: string | null = null;
  #isInParts = false;
  #renewal: NodeJS.Timeout | null = null;

  constructor(runner: ScriptRunner) {
    this.#runner = runner;
  }

  async begin(generation: number): Promise<'yours' | 'busy' | 'open'> {
    const token = this.#token ?? randomUUID();
    const answer = await this.#runner.run(scripts.begin, token, generation);
    if (answer === 'open' || answer === 'busy') return answer;
    this.#token = token;
    if (answer === 'in parts') this.#isInParts = true;
    this.#keepPlace(token);
    return 'yours';
  }

  /** False: another process is at it, or nobody asked to begin. */
  async restore(state: ReadyState): Promise<boolean> {
    const token = this.#token;
    this.stop();
    if (token === null) return false;
    try {
      return await this.#goThrough(token, state);
    } catch (error) {
      // Redis went away: the place is still ours when it is back.
      this.#token = token;
      throw error;
    }
  }

  /** Its place is another's when the time is over. */
  stop(): void {
    this.#stopRenewing();
    this.#token = null;
  }

  #stopRenewing(): void {
    if (this.#renewal !== null) clearInterval(this.#renewal);
    this.#renewal = null;
  }

  #keepPlace(token: string): void {
    this.#stopRenewing();
    let renewals = 0;
    this.#renewal = setInterval(() => {
      renewals += 1;
      if (renewals * renewEveryMs > renewForMs) this.#stopRenewing();
      else void this.#runner.run(scripts.renew, token).catch(ignoreAway);
    }, renewEveryMs);
    this.#renewal.unref();
  }

  async #goThrough(
    token: string,
    { generation, levels, running, behind, ...configuration }: ReadyState,
  ): Promise<boolean> {
    const tokens = new Map(levels.map(({ bucket, tokens }) => [bucket, tokens]));
    return (
      (!this.#isInParts || (await this.#discard(token))) &&
      (await this.#wipe(token)) &&
      (await this.#configure(token, configuration, tokens)) &&
      (await this.#resume(token, running)) &&
      (await this.#leave(token, behind)) &&
      (await this.#runner.run(scripts.open, token, generation)) === 'open'
    );
  }

  /** All that is there, by name: a search over every key of this Redis. */
  async #discard(token: string): Promise<boolean> {
    for await (const keys of this.#runner.keys()) {
      if ((await this.#runner.run(scripts.discard, token, ...keys)) === 'lost') return false;
    }
    this.#isInParts = false;
    return true;
  }

  async #wipe(token: string): Promise<boolean> {
    for (;;) {
      const answer = await this.#runner.run(scripts.wipe, token);
      if (answer !== 'more') return answer === 'done';
    }
  }

  async #configure(
    token: string,
    configuration: Configuration,
    tokens: StartingTokens,
  ): Promise<boolean> {
    for (const part of inParts(configuration)) {
      for (let rest = part; !isNothing(rest);) {
        const answer = await this.#runner.run(
          scripts.configure,
          token,
          packConfiguration(rest, tokens),
        );
        if (answer === 'lost') return false;
        rest = afterFirst(rest, Number(listOf(answer)[3]));
      }
    }
    return true;
  }

  async #resume(token: string, running: ReadyState['running']): Promise<boolean> {
    for (const part of inChunks(running, atOnce)) {
      const told = part.flatMap(({ taskId, queue, grant }) => [taskId, queue, grant]);
      if ((await this.#runner.run(scripts.resume, token, ...told)) === 'lost') return false;
    }
    return true;
  }

  async #leave(token: string, behind: ReadyState['behind']): Promise<boolean> {
    for (const part of inChunks(behind, atOnce)) {
      const places = part.map((window) => ({ ...window, ...lineStart }));
      const answer = await this.#runner.run(scripts.leave, token, ...placeArguments(places));
      if (answer === 'lost') return false;
    }
    return true;
  }
}

function ignoreAway(error: unknown): void {
  if (!(error instanceof RedisAwayError)) throw error;
}
