/**
 * How long a script may run. A script keeps all of Redis busy until it ends, so none may take longer than about
 * 10 ms, whatever queues, limits, lanes and batches people make up. A clock inside a script would say so too late,
 * so scripts count steps: every value that a command is given or answers, and every table that is unpacked. A step
 * takes about 0.6 µs with all that Lua does around it: `mostSteps` are 9 ms.
 *
 * A script pays for things before it begins with them, by the prices below, which hold what it costs to write them back
 * as well. Once nothing is left of `stepsAtOnce`, it begins nothing more, writes what it has, and answers how far
 * it came; the caller goes on from there with the next script. Prices are estimates. `script-steps.test.ts`
 * counts the steps of the worst calls that we could think of, for every script.
 *
 * What a caller knows beforehand (new limits, ids, windows) it cuts into parts of at most as many steps by itself.
 */
export const mostSteps = 15_000;

export const stepsAtOnce = 9_000;

/** Of a take, whose prices are closer: an ordinary one of 500 tasks is one script. */
export const stepsOfTake = 12_000;

/** What each costs, in steps. */
export const stepsOf = {
  /** To read the level of a limit. */
  limit: 20,
  /** To write it. */
  changedLimit: 26,
  /** To set it, besides reading it. */
  newLimit: 50,
  /** A queue that is set: state, settings, wake-up, and the limits that it had before. */
  newQueue: 60,
  settings: 6,
  /** A queue with settings that a task leaves. */
  queue: 30,
  /** A lane that is read, and written back, without its windows. */
  lane: 8,
  window: 4,
  /** A lane of a wildcard lane. */
  member: 2,
  /** One of several: their heads are compared. */
  comparedMember: 6,
  /** A lane that is parked, or opened again. */
  movedLane: 14,
  /** A new source, and the same for each limit that it shares. */
  newSource: 10,
  /** A source that a take looks at. */
  source: 32,
  grant: 8,
  /** Of a grant, to read what it costs. */
  cost: 6,
  /** An entry that takes the place of another one in a full window. */
  pushedOut: 30,
  /** An entry of a long window, of which the place or the age is compared. */
  probe: 12,
} as const;
