import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Child } from '../shared/child.js';

export interface FloodOptions {
  readonly url: string;
  readonly path: string;
  /** Absent: GET. */
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** So many callers, each of whom waits for its answer; or so many requests a second, come what may. */
  readonly load: { readonly clients: number } | { readonly rate: number };
  readonly warmUpMs: number;
  readonly durationMs: number;
}

export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly most: number;
}

export interface FloodReport {
  readonly seconds: number;
  /** By status, or by what went wrong with the connection. */
  readonly answers: Readonly<Record<string, Latency>>;
  readonly withoutRetryAfter: number;
  /** There were more connections open than anybody has. */
  readonly unsent: number;
  /** How long after it was due a request was sent, at the 99th percentile. */
  readonly lateMs: number;
  /** Ten seconds after the end. */
  readonly unanswered: number;
  /** How late the flood itself was, at the 99th percentile. */
  readonly loopDelayMs: number;
  /** Of one core. */
  readonly cpuShare: number;
}

const program = join(import.meta.dirname, 'flood.mjs');

/** A process that loads the server, so that what it measures is not its own delay. */
export class Flood {
  readonly #child: Child;
  readonly #report: string;

  constructor(report: string, { load, ...options }: FloodOptions) {
    this.#report = report;
    this.#child = new Child({
      args: [program, JSON.stringify({ ...options, ...load, report })],
    });
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** When its time is over. */
  async done(): Promise<FloodReport> {
    await this.#child.ready;
    await this.#child.exited;
    return JSON.parse(readFileSync(this.#report, 'utf8')) as FloodReport;
  }
}

export function answersOf({ answers }: FloodReport, status: number | string): Latency {
  return answers[String(status)] ?? { count: 0, p50: 0, p99: 0, most: 0 };
}
