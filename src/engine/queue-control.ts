import type { Confinement } from '../domain/confinement.js';
import { SluiceError, type FieldError } from '../domain/errors.js';
import { queueLimitFaults, rateLimitFaults } from '../domain/limit-faults.js';
import {
  changedSettings,
  queueChangeFaults,
  rateLimitOf,
  settingsOf,
} from '../domain/queue-draft.js';
import { defaultQueueSettings, type QueueSettings } from '../domain/queue-settings.js';
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
  putLimit,
  unknownLimits,
  type NamedLimit,
} from '../store/limits.js';
import {
  findQueue,
  listQueues,
  pauseQueue,
  putQueue,
  replaceQueue,
  resumeQueue,
  type ConfiguredRow,
} from '../store/queues.js';
import { unsettledAmong, unsettledLimits } from '../store/unsettled.js';
import type { Admission } from './admission.js';
import { approximateNow, instant, patiently, type EngineContext } from './context.js';
import type { Line } from './line.js';
import type { News } from './news.js';
import type { QueueDirectory } from './queue-directory.js';
import { queueView } from './queue-view.js';
import type { Counters } from './counters.js';

/** Each failure means that another change was written: so many in a row are a loop elsewhere. */
const maxChangeTries = 100;

export interface QueueControlParts {
  readonly admission: Admission;
  readonly queues: QueueDirectory;
  readonly line: Line;
  readonly counters: Counters;
  readonly news: News;
}

/** Settings of queues and shared limits: first the row in Postgres, then the ready queue. */
export class QueueControl {
  readonly #context: EngineContext;
  readonly #admission: Admission;
  readonly #queues: QueueDirectory;
  readonly #line: Line;
  readonly #counters: Counters;
  readonly #news: News;

  constructor(context: EngineContext, parts: QueueControlParts) {
    this.#context = context;
    this.#admission = parts.admission;
    this.#queues = parts.queues;
    this.#line = parts.line;
    this.#counters = parts.counters;
    this.#news = parts.news;
  }

  async listQueues(page: PageRequest, within: Confinement): Promise<Page<QueueView>> {
    const { items, nextCursor } = await listQueues(this.#context.db.reads, page, within);
    return { items: await this.#views(items), nextCursor };
  }

  async getQueue(name: string): Promise<QueueView> {
    const queue = await findQueue(this.#context.db.reads, name);
    if (queue === null) throw new SluiceError('queue_not_found', `There is no queue ${name}.`);
    return this.#view(queue);
  }

  async putQueue(name: string, draft: QueueDraft): Promise<QueueView> {
    const settings = settingsOf(draft);
    await this.#refuseFaults(defaultQueueSettings, draft, settings);
    const { db } = this.#context;
    const queue = await putQueue(db, name, settings, instant(this.#context));
    await this.#setCeiling(queue);
    return this.#changed(queue);
  }

  /** Read, changed and written over the same version: a change that came between is changed in turn. */
  async changeQueue(name: string, change: QueueChange): Promise<QueueView> {
    const { db } = this.#context;
    for (let tries = 1; tries <= maxChangeTries; tries += 1) {
      const known = await findQueue(db, name);
      const before = known?.settings ?? defaultQueueSettings;
      const settings = changedSettings(before, change);
      await this.#refuseFaults(before, change, settings);
      const queue = await replaceQueue(db, name, known, settings, instant(this.#context));
      if (queue === null) continue;
      // Else one that changes it at the same time would be undone.
      if (settings.maxActive !== before.maxActive) await this.#setCeiling(queue);
      return this.#changed(queue);
    }
    const detail = `The settings of ${name} changed ${maxChangeTries} times while they were read. Nothing was changed. Try again.`;
    throw new SluiceError('unavailable', detail, { retryAfterSeconds: 1 });
  }

  async pauseQueue(name: string, until?: Date): Promise<QueueView> {
    return this.#changed(await pauseQueue(this.#context.db, name, until ?? null));
  }

  async resumeQueue(name: string): Promise<QueueView> {
    return this.#changed(await resumeQueue(this.#context.db, name));
  }

  async listLimits(): Promise<readonly LimitView[]> {
    return this.#limitViews(await listLimits(this.#context.db.reads));
  }

  async getLimit(name: string): Promise<LimitView> {
    const limit = await findLimit(this.#context.db.reads, name);
    if (limit === null) throw limitNotFound(name);
    return this.#limitView(limit);
  }

  async putLimit(name: string, draft: RateLimitDraft): Promise<LimitView> {
    const limit = rateLimitOf(draft);
    refuseFaults(rateLimitFaults(limit));
    const { version, ...put } = await putLimit(this.#context.db, name, limit);
    await this.#queues.limitChanged({ name, version, limit });
    this.#news.tell({ kind: 'configured' });
    return this.#limitView(put);
  }

  async deleteLimit(name: string): Promise<void> {
    const answer = await deleteLimit(this.#context.db, name);
    if (answer.kind === 'missing') throw limitNotFound(name);
    if (answer.kind === 'in_use') {
      const detail = `A queue uses the limit ${name}. Take it out of that queue's settings first.`;
      throw new SluiceError('limit_in_use', detail);
    }
    this.#news.tell({ kind: 'limit deleted', name, version: answer.version });
  }

  async #refuseUnknownLimits({ limits }: QueueSettings): Promise<void> {
    const used = limits.flatMap((limit) => ('use' in limit ? [limit.use] : []));
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
  ): Promise<void> {
    refuseFaults([...queueChangeFaults(before, change), ...queueLimitFaults(settings.limits)]);
    await this.#refuseUnknownLimits(settings);
  }

  async #setCeiling({ name, settings }: ConfiguredRow): Promise<void> {
    await patiently(() => setCeiling(this.#context.db, name, settings.maxActive));
    this.#admission.reached.forget();
  }

  async #changed(queue: ConfiguredRow): Promise<QueueView> {
    await this.#queues.queueChanged(queue);
    this.#news.tell({ kind: 'configured' });
    return this.#view(queue);
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
  async #views(queues: readonly ConfiguredRow[]): Promise<QueueView[]> {
    const names = queues.map(({ name }) => name);
    const unsettled = await unsettledAmong(this.#context.db, names);
    const limited = queues.filter(({ settings }) => settings.maxActive !== null);
    const active = await this.#admission.activeIn(limited.map(({ name }) => name));
    return Promise.all(
      queues.map((queue) =>
        this.#viewWith(queue, active.get(queue.name) ?? null, !unsettled.has(queue.name)),
      ),
    );
  }

  async #view(queue: ConfiguredRow): Promise<QueueView> {
    const [view] = await this.#views([queue]);
    if (view === undefined) throw new Error(`queue ${queue.name} has no view`);
    return view;
  }

  async #viewWith(
    queue: ConfiguredRow,
    active: number | null,
    inForce: boolean,
  ): Promise<QueueView> {
    const { name } = queue;
    const live = await this.#context.ready.live(name);
    const inLine = await this.#line.countOf(name);
    const { high, medium, low } = live.depth;
    // What was counted is up to some seconds old.
    const backlog = Math.max(0, inLine - high - medium - low);
    const nowMs = approximateNow(this.#context).getTime();
    const lastMinute = this.#counters.lastMinute(nowMs, name);
    return queueView({ ...queue, inForce, live, backlog, active, lastMinute }, nowMs);
  }
}

function refuseFaults(faults: readonly FieldError[]): void {
  if (faults.length > 0) throw invalidRequest(faults);
}

function limitNotFound(name: string): SluiceError {
  return new SluiceError('limit_not_found', `There is no limit ${name}.`);
}
