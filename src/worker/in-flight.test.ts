import { describe, expect, it } from 'vitest';
import type { Lease, TaskId } from '../domain/ids.js';
import type { ClaimedTask } from '../protocol/workers-api.js';
import type { TaskAbortedError } from './errors.js';
import { InFlight } from './in-flight.js';

function run(inFlight: InFlight, name: string): string[] {
  const reasons: string[] = [];
  const task = { taskId: name as TaskId, lease: `lease of ${name}` as Lease } as ClaimedTask;
  inFlight.add({ task, stop: { abort: ({ why }: TaskAbortedError) => reasons.push(why) } });
  return reasons;
}

const ids = (...names: string[]) => names as TaskId[];

describe('InFlight', () => {
  it('R-WO2: names a cancelled task until its handler has let go, whatever else is said of it', () => {
    const inFlight = new InFlight();
    run(inFlight, 'member');
    inFlight.abort(ids('member'), 'cancelled');
    inFlight.abort(ids('member'), 'lease_lost');
    expect(inFlight.named.map(({ taskId }) => taskId)).toEqual(['member']);
    inFlight.remove('lease of member' as Lease);
    expect(inFlight.named.map(({ taskId }) => taskId)).toEqual([]);
  });

  it('R-WO12: does not name a task whose lease was lost', () => {
    const inFlight = new InFlight();
    run(inFlight, 'lost');
    run(inFlight, 'kept');
    inFlight.abort(ids('lost'), 'lease_lost');
    inFlight.abort(ids('lost'), 'cancelled');
    expect(inFlight.named.map(({ taskId }) => taskId)).toEqual(['kept']);
  });

  it('R-WO7: a cancel that comes before its task stops it all the same, and once', () => {
    const inFlight = new InFlight();
    const here = run(inFlight, 'here');
    inFlight.abort(ids('here', 'on its way'), 'cancelled');
    expect(here).toEqual(['cancelled']);
    expect(run(inFlight, 'on its way')).toEqual(['cancelled']);
    inFlight.remove('lease of on its way' as Lease);
    expect(run(inFlight, 'on its way')).toEqual([]);
  });
});
