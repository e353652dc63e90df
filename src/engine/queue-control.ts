import { isDeepStrictEqual } from 'node:util';
import type { AuditAction } from '../domain/audit.js';
import { isConfined, type Confinement } from '../domain/confinement.js';
import { SluiceError, type FieldError } from '../domain/errors.js';
import { queueLimitFaults, rateLimitFaults } from '../domain/limit-faults.js';
import {
  changedSettings,
  queueChangeFaults,
  rateLimitOf,
  settingsOf,
} from '../domain/queue-draft.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
import type { Caller } from '../protocol/caller.js';
import type { Page, PageRequest } from '../protocol/page.js';
import { invalidRequest } from '../protocol/problem-wire.js';
import type {
  LimitView,
  QueueChange,
  QueueDraft,
  QueueView,
  RateLimitDraft,
} from '../protocol/queues-api.js';
import { setCeiling } from '../store/admission.js';
import {
  deleteLimit,
  findLimit,
  listLimits,
  lockLimit,
  putLimit,
  unknownLimits,
  type NamedLimit,
} from '../store/limits.js';
import {
  findQueue,
  findQueues,
  listQueues,
  lockQueue,
  pauseQueue,
  putQueue,
  replaceQueue,
  resumeQueue,
  type ConfiguredRow,
} from '../store/queues.js';
import { unsettledAmong, unsettledLimits } from '../store/unsettled.js';
import type { Queryable } from '../store/database.js';
import type { LiveQueue } from '../ready/ready-queue.js';
import type { Admission } from './admission.js';
import { limitChanges, queueChanges, type Audit } from './audit.js';
import { type EngineContext, approximateNow, instant, patiently } from './context.js';
import type { Line } from './line.js';
import type { LiveQueues } from './live-queues.js';
import type { News } from './news.js';
import type { QueueDirectory } from './queue-directory.js';
import { queueView, type SeenQueue } from './queue-view.js';
import type { Counters } from './counters.js';

/** Each failure means that another change was written: so many in a row are a loop elsewhere. */
const maxChangeTries = 100;

export interface QueueControlParts {
  readonly admission: Admission;
  readonly queues: QueueDirectory;
  readonly line: Line;
  readonly live: LiveQueues;
  readonly counters: Counters;
  readonly news: News;
  readonly audit: Audit;
}

/** Settings of queues and shared limits: first the row in Postgres, then the ready queue. */
export class QueueControl {
  readonly #context: EngineContext;
  readonly #admission: Admission;
  readonly #queues: QueueDirectory;
  readonly #line: Line;
  readonly #live: LiveQueues;
  readonly #counters: Counters;
  readonly #news: News;
  readonly #audit: Audit;

  constructor(context: EngineContext, parts: QueueControlParts) {
    this.#context = context;
    this.#admission = parts.admission;
    this.#queues = parts.queues;
    this.#line = parts.line;
    this.#live = parts.live;
    this.#counters = parts.counters;
    this.#news = parts.news;
    this.#audit = parts.audit;
  }

  async listQueues(page: PageRequest, within: Confinement): Promise<Page<QueueView>> {
    const { items, nextCursor } = await listQueues(this.#context.db.reads, page, within);
    const live = (names: readonly string[]) => this.#live.latelyUnlessBusy(names);
    return { items: await this.#views(items, live), nextCursor };
  }

  /** Those of them that there are, in any order. */
  async viewsOf(names: readonly string[]): Promise<QueueView[]> {
    const queues = await findQueues(this.#context.db.reads, names);
    return this.#views(queues, (found) => this.#live.lately(found));
  }

  async getQueue(name: string): Promise<QueueView> {
    const queue = await findQueue(this.#context.db.reads, name);
    if (queue === null) throw new SluiceError('queue_not_found', `There is no queue ${name}.`);
    return this.#view(queue, (found) => this.#live.nowUnlessBusy(found));
  }

  async putQueue(name: string, draft: QueueDraft, caller: Caller): Promise<QueueView> {
    const settings = settingsOf(draft);
    await this.#refuseFaults(defaultQueueSettings, draft, settings, caller);
    const queue = await this.#write(name, 'queue.put', caller, (tx, before) => {
      refuseOtherSharedLimits(before, settings, caller);
      return putQueue(tx, name, settings, instant(this.#context));
    });
    await this.#setCeiling(queue);
    return this.#changed(queue);
  }

  /** Read, changed and written over the same version: a change that came between is changed in turn. */
  async changeQueue(name: string, change: QueueChange, caller: Caller): Promise<QueueView> {
    const { db } = this.#context;
    for (let tries = 1; tries <= maxChangeTries; tries += 1) {
      const known = await findQueue(db, name);
      const before = known?.settings ?? defaultQueueSettings;
      const settings = changedSettings(before, change);
      await this.#refuseFaults(before, change, settings, caller);
      const queue = await this.#write(name, 'queue.change', caller, (tx, stored) => {
        refuseOtherSharedLimits(stored, settings, caller);
        return replaceQueue(tx, name, known, settings, instant(this.#context));
      });
      if (queue === null) continue;
      // Else one that changes it at the same time would be undone.
      if (settings.maxActive !== before.maxActive) await this.#setCeiling(queue);
      return this.#changed(queue);
    }
    const detail = `The settings of ${name} changed ${maxChangeTries} times while they were read. Nothing was changed. Try again.`;
    throw new SluiceError('unavailable', detail, { retryAfterSeconds: 1 });
  }

  async pauseQueue(name: string, until: Date | undefined, caller: Caller): Promise<QueueView> {
    const pause = (tx: Queryable) => pauseQueue(tx, name, until ?? null);
    return this.#changed(await this.#write(name, 'queue.pause', caller, pause));
  }

  async resumeQueue(name: string, caller: Caller): Promise<QueueView> {
    const resume = (tx: Queryable) => resumeQueue(tx, name);
    return this.#changed(await this.#write(name, 'queue.resume', caller, resume));
  }

  /** With its entry in the audit, unless nothing was written. */
  #write<Row extends ConfiguredRow | null>(
    name: string,
    action: AuditAction,
    caller: Caller,
    write: (tx: Queryable, before: ConfiguredRow | null) => Promise<Row>,
  ): Promise<Row> {
    return this.#transaction(async (tx) => {
      const before = await lockQueue(tx, name);
      const after = await write(tx, before);
      if (after === null) return after;
      const changes = queueChanges(before, after, defaultQueueSettings);
      await this.#audit.record(tx, caller, { action, subject: name, changes });
      return after;
    });
  }

  /** Two people may change one thing at once: the second one waits for the first. */
  #transaction<Row>(write: (tx: Queryable) => Promise<Row>): Promise<Row> {
    return patiently(() => this.#context.db.transaction(write));
  }

  async listLimits(): Promise<readonly LimitView[]> {
    return this.#limitViews(await listLimits(this.#context.db.reads));
  }

  async getLimit(name: string): Promise<LimitView> {
    const limit = await findLimit(this.#context.db.reads, name);
    if (limit === null) throw limitNotFound(name);
    return this.#limitView(limit);
  }

  async putLimit(name: string, draft: RateLimitDraft, caller: Caller): Promise<LimitView> {
    const limit = rateLimitOf(draft);
    refuseFaults(rateLimitFaults(limit));
    const { version, ...put } = await this.#transaction(async (tx) => {
      const changes = limitChanges(await lockLimit(tx, name), limit);
      const written = await putLimit(tx, name, limit);
      await this.#audit.record(tx, caller, { action: 'limit.put', subject: name, changes });
      return written;
    });
    await this.#queues.limitChanged({ name, version, limit });
    this.#news.tell({ kind: 'configured' });
    return this.#limitView(put);
  }

  async deleteLimit(name: string, caller: Caller): Promise<void> {
    const answer = await deleteLimit(this.#context.db, name, (tx, limit) => {
      const changes = limitChanges(limit, null);
      return this.#audit.record(tx, caller, { action: 'limit.delete', subject: name, changes });
    });
    if (answer.kind === 'missing') throw limitNotFound(name);
    if (answer.kind === 'in_use') {
      const detail = `A queue uses the limit ${name}. Take it out of that queue's settings first.`;
      throw new SluiceError('limit_in_use', detail);
    }
    this.#news.tell({ kind: 'limit deleted', name, version: answer.version });
  }

  async #refuseUnknownLimits({ limits }: QueueSettings): Promise<void> {
    const used = sharedLimitsOf({ limits });
    const unknown = used.length === 0 ? [] : await unknownLimits(this.#context.db, used);
    if (unknown.length === 0) return;
    const errors = limits.flatMap((limit, index) =>
      'use' in limit && unknown.includes(limit.use)
        ? [{ path: `/limits/${String(index)}/use`, message: `there is no limit "${limit.use}"` }]
        : [],
    );
    const detail = `There is no limit ${unknown.join(', ')}. Make it with PUT /api/v1/limits first.`;
    throw new SluiceError('invalid_request', detail, { errors });
  }

  async #refuseFaults(
    before: QueueSettings,
    change: QueueChange,
    settings: QueueSettings,
    caller: Caller,
  ): Promise<void> {
    refuseFaults([...queueChangeFaults(before, change), ...queueLimitFaults(settings.limits)]);
    // A confined caller would learn which limits there are.
    if (!isConfined(caller.confinement)) await this.#refuseUnknownLimits(settings);
  }

  async #setCeiling({ name, settings }: ConfiguredRow): Promise<void> {
    await patiently(() => setCeiling(this.#context.db, name, settings.maxActive));
    this.#admission.reached.forget();
  }

  async #changed(queue: ConfiguredRow): Promise<QueueView> {
    await this.#queues.queueChanged(queue);
    this.#news.tell({ kind: 'configured' });
    return this.#view(queue, (name) => this.#live.now(name));
  }

  async #limitViews(limits: readonly NamedLimit[]): Promise<LimitView[]> {
    const unsettled = await unsettledLimits(this.#context.db);
    return limits.map((limit) => ({ ...limit, inForce: !unsettled.has(limit.name) }));
  }

  async #limitView(limit: NamedLimit): Promise<LimitView> {
    const [view] = await this.#limitViews([limit]);
    if (view === undefined) throw new Error(`limit ${limit.name} has no view`);
    return view;
  }

  /** One look at the counts for all of them. */
  async #views(
    queues: readonly ConfiguredRow[],
    lookAt: (names: readonly string[]) => Promise<ReadonlyMap<string, LiveQueue>>,
  ): Promise<QueueView[]> {
    const names = queues.map(({ name }) => name);
    const unsettled = await unsettledAmong(this.#context.db, names);
    const limited = queues.filter(({ settings }) => settings.maxActive !== null);
    const active = await this.#admission.activeIn(limited.map(({ name }) => name));
    const seen = await lookAt(names);
    const views = queues.map(async (queue) => {
      const live = seen.get(queue.name);
      if (live === undefined) throw new Error(`queue ${queue.name} was not looked at`);
      const inForce = !unsettled.has(queue.name);
      return this.#viewWith({ ...queue, inForce, live, active: active.get(queue.name) ?? null });
    });
    return Promise.all(views);
  }

  async #view(
    queue: ConfiguredRow,
    lookAt: (name: string) => Promise<LiveQueue>,
  ): Promise<QueueView> {
    const lookAtIt = async () => new Map([[queue.name, await lookAt(queue.name)]]);
    const [view] = await this.#views([queue], lookAtIt);
    if (view === undefined) throw new Error(`queue ${queue.name} has no view`);
    return view;
  }

  async #viewWith(seen: Omit<SeenQueue, 'backlog' | 'lastMinute'>): Promise<QueueView> {
    // What was counted is up to some seconds old.
    const { backlog } = await this.#line.of(seen.name);
    const nowMs = approximateNow(this.#context).getTime();
    const lastMinute = this.#counters.lastMinute(nowMs, seen.name);
    return queueView({ ...seen, backlog, lastMinute }, nowMs);
  }
}

function sharedLimitsOf({ limits }: Pick<QueueSettings, 'limits'>): string[] {
  return limits.flatMap((limit) => ('use' in limit ? [limit.use] : []));
}

/** A shared limit holds for queues of others as well: who is confined neither joins nor leaves one. */
function refuseOtherSharedLimits(
  stored: ConfiguredRow | null,
  settings: QueueSettings,
  { confinement }: Caller,
): void {
  if (!isConfined(confinement)) return;
  const before = sharedLimitsOf(stored?.settings ?? defaultQueueSettings);
  const isSame = isDeepStrictEqual(before.toSorted(), sharedLimitsOf(settings).toSorted());
  if (isSame) return;
  const kept = before.length === 0 ? 'none' : before.join(', ');
  const detail = `A key that is confined can't change which shared limits a queue uses (${kept}).`;
  throw new SluiceError('forbidden', detail);
}

function refuseFaults(faults: readonly FieldError[]): void {
  if (faults.length > 0) throw invalidRequest(faults);
}

function limitNotFound(name: string): SluiceError {
  return new SluiceError('limit_not_found', `There is no limit ${name}.`);
}
