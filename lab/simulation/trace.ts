import { Names } from './names.js';
import type { VirtualTime } from './virtual-time.js';

/** All that happened, in order, without anything that differs from run to run. */
export class Trace {
  readonly names = new Names();
  readonly lines: string[] = [];
  readonly #time: VirtualTime;
  readonly #beganMs: number;
  readonly #print: ((line: string) => void) | null;

  constructor(time: VirtualTime, print: ((line: string) => void) | null) {
    this.#time = time;
    this.#beganMs = time.nowMs;
    this.#print = print;
  }

  note(text: string): void {
    const seconds = ((this.#time.nowMs - this.#beganMs) / 1000).toFixed(3).padStart(8);
    const line = `${seconds}  ${text}`;
    this.lines.push(line);
    this.#print?.(line);
  }

  task(taskId: string): string {
    return this.names.of('task', taskId);
  }

  lease(lease: string): string {
    return this.names.of('lease', lease);
  }

  worker(workerId: string): string {
    return this.names.of('worker', workerId);
  }
}
