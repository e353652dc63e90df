import type { Configuration, Offer, OfferAnswer, ReadyState } from '../../src/ready/ready-queue.js';
import type { QueueSettings } from '../../src/domain/queue-settings.js';
import type { TaskId } from '../../src/domain/ids.js';
import type { Sabotage } from './run-seed.js';
import { WatchedReadyQueue } from './server.js';
import type { World } from './world.js';

/** A ready queue that is told less than it should be. */
function unruly(change: Partial<QueueSettings>): Sabotage {
  const without = <Given extends Configuration>(given: Given): Given => ({
    ...given,
    queues: given.queues.map((queue) => ({ ...queue, settings: { ...queue.settings, ...change } })),
  });
  class Unruly extends WatchedReadyQueue {
    override restore(state: ReadyState): Promise<boolean> {
      return super.restore(without(state));
    }

    override configure(configuration: Configuration): ReturnType<WatchedReadyQueue['configure']> {
      return super.configure(without(configuration));
    }
  }
  return { makeReady: (options) => new Unruly(options) };
}

/** It says that it holds what it dropped, so that nobody offers it again. */
class Forgetful extends WatchedReadyQueue {
  override async offer(offers: readonly Offer[]): Promise<OfferAnswer> {
    const kept = offers.filter(({ seq }) => seq % 4 !== 0);
    const answer = await super.offer(kept);
    if (answer.kind === 'rebuild') return answer;
    const said = new Map(kept.map(({ taskId }, index) => [taskId, answer.outcomes[index]]));
    return {
      kind: 'offered',
      outcomes: offers.map(({ taskId }) => said.get(taskId) ?? 'accepted'),
    };
  }

  override async missing(_taskIds: readonly TaskId[]): Promise<readonly TaskId[]> {
    return [];
  }
}

/** Somebody writes into the database who should not. */
function writing(sql: string): Sabotage {
  return { afterStep: (world: World) => world.stage.db.urgent.run(sql) };
}

const historyColumns = `id, seq, queue, task_type, capabilities, priority, status, created_at,
  eligible_at, timeout_seconds, max_retries, retry_count, attempt, deferrals, returns, lease,
  worker_id, halts_workflow, tags, result, past_attempts`;

interface Planted {
  readonly sabotage: Sabotage;
  /** The rule that finds it. */
  readonly rule: string;
}

/** Bugs on purpose, each with the rule that must find it. */
export const sabotages: Readonly<Record<string, Planted>> = {
  'a task is dropped': {
    sabotage: writing(`delete from sluice.tasks where id in (
      select id from sluice.tasks where status = 'queued' limit 1)`),
    rule: 'a task exists exactly once',
  },
  'a task completes twice': {
    sabotage: writing(`insert into sluice.task_history (ended_at, ${historyColumns})
      select ended_at + interval '1 millisecond', ${historyColumns}
      from sluice.task_history where status = 'completed' limit 1`),
    rule: 'a task exists exactly once',
  },
  'a completed task runs again': {
    sabotage: writing(`with gone as (
        delete from sluice.task_history where status = 'completed' returning *)
      insert into sluice.tasks (id, seq, queue, task_type, capabilities, priority, status,
        created_at, eligible_at, queued_at, timeout_seconds, max_retries)
      select id, seq, queue, task_type, capabilities, priority, 'queued', created_at, eligible_at,
        ended_at, timeout_seconds, max_retries from gone`),
    rule: 'no such move',
  },
  'another result is written': {
    sabotage: {
      ...writing(`
        create or replace function simulation.spoil() returns trigger language plpgsql as
          $$ begin new.result := '{"word": "report-0"}'; return new; end $$;
        create or replace trigger spoil before insert on sluice.task_history
          for each row execute function simulation.spoil();`),
      undo: 'drop function if exists simulation.spoil cascade',
    },
    rule: 'the result is that of the good lease',
  },
  'a lease is replaced': {
    sabotage: writing(`update sluice.tasks set lease = gen_random_uuid() where lease is not null`),
    rule: 'one live lease per task',
  },
  'a retry is charged for nothing': {
    sabotage: writing(`update sluice.tasks set retry_count = retry_count + 1
      where status = 'pending' and retry_count < max_retries`),
    rule: 'retry count is attempts that cost',
  },
  'a workflow goes on with its last one': {
    sabotage: writing(`
      update sluice.tasks head set status = 'pending', waits_for = 'workflow', queued_at = null
      where status = 'queued' and exists (
        select from sluice.tasks other
        where other.workflow_id = head.workflow_id and other.seq > head.seq
          and other.waits_for = 'workflow');
      update sluice.tasks last set status = 'queued', waits_for = null, queued_at = now()
      where waits_for = 'workflow'
        and not exists (
          select from sluice.tasks other
          where other.workflow_id = last.workflow_id and other.id <> last.id
            and (other.seq > last.seq or other.waits_for is distinct from 'workflow'));`),
    rule: 'a workflow in its order',
  },
  'a healthy worker is buried': {
    sabotage: writing(`update sluice.workers set last_heartbeat_at = 'epoch'`),
    rule: 'a healthy worker keeps its tasks',
  },
  'limits are ignored': { sabotage: unruly({ limits: [] }), rule: 'no limit is exceeded' },
  'max_concurrency is ignored': {
    sabotage: unruly({ maxConcurrency: null }),
    rule: 'no more at once than max_concurrency',
  },
  'pauses are ignored': {
    sabotage: unruly({ paused: false, pausedUntil: null }),
    rule: 'a paused queue gives nothing',
  },
  'offers are forgotten': {
    sabotage: { makeReady: (options) => new Forgetful(options) },
    rule: 'every task ends',
  },
};

export function sabotageOf(name: string): Sabotage {
  const planted = sabotages[name];
  if (planted === undefined) throw new Error(`There is no sabotage "${name}".`);
  return planted.sabotage;
}
