import {
  comeBackSeconds,
  shortage,
  submissionLimitText,
  type SubmissionLimit,
} from '../domain/submission-limit.js';
import type { Caller } from '../protocol/caller.js';
import { Batcher, type Settled } from '../runtime/batcher.js';
import { findByKey } from '../store/find-by-key.js';
import type { NewTask, Submitted } from '../store/new-task.js';
import {
  returnSubmissions,
  spendSubmissions,
  type SubmissionReturn,
} from '../store/submission-limits.js';
import { instant, judgeDatabaseFailure, type EngineContext } from './context.js';

/** The rows of all who submit are locked until the last of them is counted. */
const maxTasksAtOnce = 500;

/** Its API key or its user submitted as much as they may. */
export interface OverLimit {
  readonly kind: 'over_limit';
  readonly detail: string;
  readonly retryAfterSeconds: number;
}

interface Submission {
  readonly task: NewTask;
  readonly owner: string;
}

type Verdict =
  | { readonly kind: 'passed'; readonly spent: readonly SubmissionReturn[] }
  | { readonly kind: 'answered'; readonly answer: Submitted | OverLimit };

/** What one of several gets of what all of them were granted. */
type Share =
  | { readonly kind: 'granted'; readonly spent: readonly SubmissionReturn[] }
  | { readonly kind: 'short'; readonly limit: SubmissionLimit; readonly waitMs: number };

const unlimited: Share = { kind: 'granted', spent: [] };

/**
 * How many tasks an API key and a user may submit. They count when they are made: what turns out to
 * be the repeat of another, or finds no place, is given back.
 */
export class SubmissionLimits {
  readonly #context: EngineContext;
  readonly #submissions: Batcher<Submission, Verdict>;
  readonly #returns: Batcher<SubmissionReturn, null>;
  /** Nobody is limited: there is nothing to pass. */
  readonly areOff: boolean;

  constructor(context: EngineContext) {
    this.#context = context;
    const { submitLimitPerKey, submitLimitPerUser } = context.settings;
    this.areOff = submitLimitPerKey.length + submitLimitPerUser.length === 0;
    this.#submissions = new Batcher({
      flush: (submissions) => this.#judge(submissions),
      maxItems: maxTasksAtOnce,
      // What one caller submits stays in its order: it may be one workflow.
      groupOf: ({ owner }) => owner,
      judge: judgeDatabaseFailure,
    });
    this.#returns = new Batcher({
      flush: async (returns) => {
        await returnSubmissions(this.#context.db, returns);
        return returns.map(() => null);
      },
      maxItems: maxTasksAtOnce,
      judge: judgeDatabaseFailure,
    });
  }

  /**
   * Writes those that are over no limit, in their order. One answer for each of all. When `write` rejects,
   * nothing was written.
   */
  async pass<Task extends NewTask, Outcome extends { readonly kind: string }>(
    tasks: readonly Task[],
    { owner }: Caller,
    write: (passed: readonly Task[]) => Promise<readonly Settled<Outcome>[]>,
  ): Promise<readonly Settled<Outcome | Submitted | OverLimit>[]> {
    const verdicts = await this.#submissions.settleAll(tasks.map((task) => ({ task, owner })));
    const passed = tasks.filter((_, n) => spentOn(verdicts[n]) !== null);
    const spent = verdicts.flatMap((verdict) => spentOn(verdict) ?? []);
    const written = await write(passed).catch(async (error: unknown) => {
      await this.#giveBack(spent);
      throw error;
    });
    const unused: SubmissionReturn[] = [];
    const answers = written.values();
    const all = verdicts.map((verdict) => {
      if (verdict.kind === 'failed') return verdict;
      if (verdict.outcome.kind === 'answered') return done(verdict.outcome.answer);
      const answer = answers.next().value;
      if (answer === undefined) throw new Error('a submit was not answered');
      const madeNone = answer.kind === 'done' && answer.outcome.kind !== 'created';
      if (madeNone) unused.push(...verdict.outcome.spent);
      return answer;
    });
    await this.#giveBack(unused);
    return all;
  }

  /** Users first: one who is over a limit takes nothing from the others with the same key. */
  async #judge(submissions: readonly Submission[]): Promise<Verdict[]> {
    const { submitLimitPerKey, submitLimitPerUser } = this.#context.settings;
    const spent: SubmissionReturn[] = [];
    try {
      const users = await this.#spend(submitLimitPerUser, submissions.map(userOf), spent);
      const keys = await this.#spend(
        submitLimitPerKey,
        submissions.map((one, n) => (users[n]?.kind === 'short' ? null : keyOf(one))),
        spent,
      );
      const known = await this.#findKnown(
        submissions.filter((_, n) => users[n]?.kind === 'short' || keys[n]?.kind === 'short'),
      );
      const unused: SubmissionReturn[] = [];
      const verdicts = submissions.map((submission, n): Verdict => {
        const user = users[n] ?? unlimited;
        const key = keys[n] ?? unlimited;
        if (user.kind === 'granted' && key.kind === 'granted') {
          return { kind: 'passed', spent: [...user.spent, ...key.spent] };
        }
        if (user.kind === 'granted') unused.push(...user.spent);
        const answer = known.get(submission.task.taskId) ?? this.#refuse(submission, user, key);
        return { kind: 'answered', answer };
      });
      await this.#giveBack(unused);
      return verdicts;
    } catch (error) {
      await this.#giveBack(spent);
      throw error;
    }
  }

  /** Those who come first are granted first. Null is nobody, and limited by nothing. */
  async #spend(
    limits: readonly SubmissionLimit[],
    subjects: readonly (string | null)[],
    spent: SubmissionReturn[],
  ): Promise<Share[]> {
    const counts = new Map<string, number>();
    for (const subject of subjects) {
      if (subject !== null) counts.set(subject, (counts.get(subject) ?? 0) + 1);
    }
    if (limits.length === 0 || counts.size === 0) return subjects.map(() => unlimited);
    const wants = [...counts].map(([subject, tasks]) => ({ subject, tasks }));
    const now = instant(this.#context);
    const grants = await spendSubmissions(this.#context.db, limits, wants, now);
    const grantOf = new Map(grants.map((grant) => [grant.subject, { ...grant }]));
    return subjects.map((subject): Share => {
      if (subject === null) return unlimited;
      const grant = grantOf.get(subject);
      if (grant === undefined) throw new Error('a submission was not answered');
      if (grant.granted === 0) {
        const short = shortage(limits, grant.slots ?? [], grant.atMs);
        if (short === null) throw new Error('a limit that has room refused a task');
        return { kind: 'short', ...short };
      }
      grant.granted -= 1;
      const one = { subject: grant.subject, tasks: 1, atMs: grant.atMs };
      spent.push(one);
      return { kind: 'granted', spent: [one] };
    });
  }

  /** Whose idempotency key already has a task is told of it, and not refused. */
  async #findKnown(
    refused: readonly Submission[],
  ): Promise<ReadonlyMap<NewTask['taskId'], Submitted>> {
    const tasks = refused.map(({ task }) => task).filter((task) => task.idempotency !== null);
    if (tasks.length === 0) return new Map();
    return findByKey(this.#context.db, tasks, instant(this.#context));
  }

  #refuse({ task, owner }: Submission, user: Share, key: Share): OverLimit {
    const [share, who] =
      user.kind === 'short'
        ? [user, `User ${JSON.stringify(task.userId)}`]
        : [key, owner === '' ? 'All callers without an API key together' : `API key ${owner}`];
    if (share.kind !== 'short') throw new Error('a task that is over no limit was refused');
    const retryAfterSeconds = comeBackSeconds(share.waitMs, this.#context.random());
    const rate = submissionLimitText(share.limit);
    const detail = `${who} may submit ${rate} and did so. Try again in ${retryAfterSeconds} s.`;
    return { kind: 'over_limit', detail, retryAfterSeconds };
  }

  /** If it can't be, it counts as used: nobody gets over a limit by that. */
  async #giveBack(spent: readonly SubmissionReturn[]): Promise<void> {
    await this.#returns.addAll(spent).catch((error: unknown) => {
      this.#context.log.debug({ err: error }, 'submissions that made no task go on counting');
    });
  }
}

/** Null: it did not pass. */
function spentOn(verdict: Settled<Verdict> | undefined): readonly SubmissionReturn[] | null {
  return verdict?.kind === 'done' && verdict.outcome.kind === 'passed'
    ? verdict.outcome.spent
    : null;
}

function done<Outcome>(outcome: Outcome): Settled<Outcome> {
  return { kind: 'done', outcome };
}

function keyOf({ owner }: Submission): string {
  return `key ${owner}`;
}

/** As it comes back from Postgres: what is no text is not counted as another user. */
function userOf({ task }: Submission): string | null {
  return task.userId === null ? null : Buffer.from(`user ${task.userId}`).toString();
}
