import type { Route } from './document.js';
import type { FuzzAnswer } from './send.js';

export interface RouteTally {
  readonly statuses: Map<number, number>;
  slowestMs: number;
}

/** What was asked how often, how it was answered, and what was wrong. */
export class Tally {
  readonly routes: ReadonlyMap<string, RouteTally>;
  readonly faults: string[] = [];

  constructor(routes: readonly Route[]) {
    this.routes = new Map(
      routes.map(({ method, path }) => [
        `${method} ${path}`,
        { statuses: new Map<number, number>(), slowestMs: 0 },
      ]),
    );
  }

  count(route: string, { status, tookMs }: FuzzAnswer): void {
    const tally = this.routes.get(route);
    if (tally === undefined) throw new Error(`${route} is not in the document`);
    tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1);
    tally.slowestMs = Math.max(tally.slowestMs, tookMs);
  }

  fault(about: string, fault: string): void {
    this.faults.push(`${fault}: ${about}`);
  }

  get requests(): number {
    return this.countWhere(() => true);
  }

  countWhere(wanted: (status: number, route: string) => boolean): number {
    let count = 0;
    for (const [route, { statuses }] of this.routes) {
      for (const [status, times] of statuses) if (wanted(status, route)) count += times;
    }
    return count;
  }

  get slowestMs(): number {
    return Math.max(...[...this.routes.values()].map(({ slowestMs }) => slowestMs));
  }
}
