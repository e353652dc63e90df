import type { JsonValue } from '../../domain/json.js';
import type { ForwardedMethod } from './messages.js';
import { RoundTrips } from './round-trips.js';

/** No process leads, or the one that leads does not answer. */
export class LeaderAwayError extends Error {
  override readonly name = 'LeaderAwayError';
}

/** Calls that may be without an answer; the next ones wait here, so that the mailbox stays small. */
const mostUnderWay = 256;
/** Longer than any call takes; a leader that is dead is replaced about as soon. */
const answerMs = 5_000;
const lookMs = 250;
const silence = 'the process that leads does not answer';

export interface CallPatience {
  /** How long the answer is waited for. While the leader is silent, no call is even sent. */
  readonly patienceMs?: number;
}

interface Call {
  readonly id: number;
  readonly method: ForwardedMethod;
  readonly args: readonly JsonValue[];
  readonly resolve: (value: JsonValue) => void;
  readonly reject: (error: Error) => void;
  readonly patienceMs: number;
  sentMs: number;
}

export type PostCall = (leader: string, text: string) => Promise<void>;

/**
 * Calls to the leader that wait for their answers. An id is given before a call is sent, since its answer can come
 * before the statement that sent it has ended. When the leader changes, nothing of the old one is waited for.
 */
export class LeaderCalls {
  readonly trips = new RoundTrips();
  readonly #post: PostCall;
  readonly #underWay = new Map<number, Call>();
  #waiting: Call[] = [];
  #leader: string | null = null;
  #lastId = 0;
  /** No answer came in time, and none since. */
  #isSilent = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(post: PostCall) {
    this.#post = post;
  }

  get leader(): string | null {
    return this.#leader;
  }

  /** Null while calls are answered. */
  trouble(): string | null {
    if (this.#leader === null) return 'No process leads this database yet';
    return this.#isSilent ? 'The process that leads this database does not answer' : null;
  }

  /** All that was sent to another leader is given up: what came of it, the repairs find out. */
  pointTo(leader: string | null): void {
    if (leader === this.#leader) return;
    this.#leader = leader;
    this.#isSilent = false;
    const lost = [...this.#underWay.values(), ...this.#waiting];
    this.#underWay.clear();
    this.#waiting = [];
    this.#giveUp(lost, 'another process leads by now');
  }

  call(
    method: ForwardedMethod,
    args: readonly JsonValue[],
    { patienceMs = answerMs }: CallPatience = {},
  ): Promise<JsonValue> {
    if (this.#leader === null) return Promise.reject(new LeaderAwayError('no process leads'));
    if (this.#isSilent) return Promise.reject(new LeaderAwayError(silence));
    return this.#begin(method, args, patienceMs);
  }

  #begin(
    method: ForwardedMethod,
    args: readonly JsonValue[],
    patienceMs: number,
  ): Promise<JsonValue> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const call = { id, method, args, resolve, reject, patienceMs, sentMs: 0 };
      if (this.#underWay.size < mostUnderWay) this.#send(call, this.#leader ?? '');
      else this.#waiting.push(call);
    });
  }

  answered(from: string, id: number, value: JsonValue): void {
    const call = this.#end(from, id);
    if (call === null) return;
    this.trips.answered(performance.now() - call.sentMs);
    call.resolve(value);
  }

  failed(from: string, id: number, error: Error): void {
    this.#end(from, id)?.reject(error);
  }

  #end(from: string, id: number): Call | null {
    if (from !== this.#leader) return null;
    const call = this.#underWay.get(id);
    if (call === undefined) return null;
    this.#isSilent = false;
    this.#underWay.delete(id);
    this.#sendWaiting();
    return call;
  }

  #sendWaiting(): void {
    while (this.#underWay.size < mostUnderWay) {
      const next = this.#waiting.shift();
      if (next === undefined || this.#leader === null) return;
      this.#send(next, this.#leader);
    }
  }

  #send(call: Call, leader: string): void {
    const { id, method, args } = call;
    call.sentMs = performance.now();
    this.#underWay.set(id, call);
    this.#lookLater();
    this.#post(leader, JSON.stringify(['call', id, method, args])).catch((error: unknown) => {
      if (this.#underWay.get(id) !== call) return;
      this.#underWay.delete(id);
      call.reject(new LeaderAwayError('the call could not be sent', { cause: error }));
      this.#sendWaiting();
    });
  }

  #lookLater(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => this.#look(), lookMs).unref();
  }

  #look(): void {
    this.#timer = null;
    const nowMs = performance.now();
    const late = [...this.#underWay.values()].filter(
      ({ sentMs, patienceMs }) => nowMs - sentMs >= patienceMs,
    );
    for (const { id } of late) this.#underWay.delete(id);
    if (late.length > 0) this.#isSilent = true;
    // Nobody waits for the rest: each of them would wait as long.
    this.#giveUp(this.#isSilent ? [...late, ...this.#waiting.splice(0)] : late, silence);
    this.#sendWaiting();
    if (this.#underWay.size > 0) this.#lookLater();
    // Any answer ends the silence: somebody has to ask.
    else if (this.#isSilent) this.#begin('missing', [[]], answerMs).catch(() => undefined);
  }

  #giveUp(calls: readonly Call[], why: string): void {
    this.trips.lost(calls.length);
    for (const { reject } of calls) reject(new LeaderAwayError(why));
  }
}
