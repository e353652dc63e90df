import { randomUUID } from 'node:crypto';
import { readingsOf, type AlertRule } from '../domain/alerts/rule.js';
import {
  alertNames,
  isAlertName,
  ruleOf,
  runbookOf,
  type AlertName,
} from '../domain/alerts/rules.js';
import type { AlertSnapshot } from '../domain/alerts/snapshot.js';
import {
  defaultAlertSettings,
  isSilenced,
  stepAlert,
  type ActiveAlert,
  type AlertStep,
} from '../domain/alerts/state.js';
import { summaryOf } from '../domain/alerts/text.js';
import { changesBetween, type AuditAction } from '../domain/audit.js';
import { findMeant } from '../domain/did-you-mean.js';
import { SluiceError } from '../domain/errors.js';
import type { JsonObject } from '../domain/json.js';
import type {
  AlertDraft,
  AlertFilter,
  AlertList,
  AlertSilence,
  AlertView,
} from '../protocol/alerts-api.js';
import { alertToWire } from '../protocol/alerts-wire.js';
import { anybody, type Caller } from '../protocol/caller.js';
import { invalidField } from '../protocol/problem-wire.js';
import {
  leaveEvaluating,
  putAlertSettings,
  readAlertBook,
  silenceAlert,
  takeEvaluatingTurn,
  writeEvaluation,
  type AlertBook,
  type AlertChange,
  type NewMessage,
  type StoredSettings,
} from '../store/alerts.js';
import { SlowReadError, type Queryable } from '../store/database.js';
import type { AlertOptions } from './alert-options.js';
import { AlertReader, type AlertSources } from './alert-reader.js';
import type { Audit } from './audit.js';
import { instant, patiently, type EngineContext } from './context.js';
import type { WebhookOutbox } from './webhook-outbox.js';

/** Where messages about alerts go. */
export const alertTarget = 'alerts';

const leastLeaseMs = 15_000;
const leastMeasuredForMs = 120_000;

interface Book extends AlertBook {
  /** False: what was measured says nothing about now. */
  readonly isFresh: boolean;
}

interface Stepped {
  readonly name: AlertName;
  readonly step: AlertStep;
}

/**
 * Evaluates the alert rules, one server at a time, and answers what is known of them. What fires is a row in Postgres,
 * so that it fires once, whichever server evaluates and however often it begins anew.
 */
export class Alerts {
  readonly #context: EngineContext;
  readonly #reader: AlertReader;
  readonly #outbox: WebhookOutbox;
  readonly #audit: Audit;
  readonly #evaluator = randomUUID();
  /** Postgres takes too long to count. */
  #isTooSlow = false;

  constructor(context: EngineContext, sources: AlertSources, outbox: WebhookOutbox, audit: Audit) {
    this.#context = context;
    this.#audit = audit;
    this.#reader = new AlertReader(context, sources);
    this.#outbox = outbox;
  }

  /** Null: this process evaluates no alerts. */
  get options(): AlertOptions | null {
    return this.#context.alerts ?? null;
  }

  async tick(): Promise<number> {
    const { intervalMs, tells } = this.options ?? { intervalMs: Infinity, tells: false };
    const { db, mode } = this.#context;
    const leaseMs = Math.max(leastLeaseMs, 3 * intervalMs);
    const taking = { evaluator: this.#evaluator, leaseMs, isAlone: mode !== 'redis' };
    const turn = await takeEvaluatingTurn(db, taking, instant(this.#context));
    if (turn !== null) await this.#evaluate(turn, tells);
    return intervalMs;
  }

  /** Another server may evaluate at once. */
  async leave(): Promise<void> {
    if (this.options !== null) await leaveEvaluating(this.#context.db, this.#evaluator);
  }

  async listAlerts({ state }: AlertFilter = {}): Promise<AlertList> {
    const book = await this.#readBook(this.#context.db.reads);
    const views = alertNames.flatMap((name) => viewsOf(name, book));
    const items = state === undefined ? views : views.filter((view) => view.state === state);
    return { items, evaluatedAt: book.evaluatedAt };
  }

  async putAlert(name: string, draft: AlertDraft, caller = anybody): Promise<AlertView> {
    const known = knownName(name);
    const { threshold = null, forSeconds = null, off = false } = draft;
    refuseMoreThanAll(known, threshold);
    return this.#change(known, { caller, action: 'alert.put' }, (tx) =>
      putAlertSettings(tx, known, { threshold, forSeconds, off }),
    );
  }

  async silenceAlert(
    name: string,
    { seconds, note }: AlertSilence,
    caller = anybody,
  ): Promise<AlertView> {
    const known = knownName(name);
    const silence = { seconds, note: note ?? null };
    return this.#change(known, { caller, action: 'alert.silence' }, (tx) =>
      silenceAlert(tx, known, silence, instant(this.#context)),
    );
  }

  /** As measured last by the server that evaluates; null: none does. */
  async findSnapshot(): Promise<AlertSnapshot | null> {
    const book = await this.#readBook(this.#context.db.reads);
    return book.isFresh ? book.snapshot : null;
  }

  async #readBook(db: Queryable): Promise<Book> {
    const book = await readAlertBook(db, instant(this.#context));
    const { intervalMs } = this.options ?? { intervalMs: 0 };
    const measuredForMs = Math.max(leastMeasuredForMs, 3 * intervalMs);
    const { evaluatedAt, nowMs } = book;
    const isFresh = evaluatedAt !== null && nowMs - evaluatedAt.getTime() < measuredForMs;
    return { ...book, isFresh };
  }

  /** With its entry in the audit, in one transaction. */
  #change(
    name: AlertName,
    { caller, action }: { readonly caller: Caller; readonly action: AuditAction },
    write: (tx: Queryable) => Promise<void>,
  ): Promise<AlertView> {
    const view = async (tx: Queryable) => ruleView(name, await this.#readBook(tx));
    const change = async (tx: Queryable) => {
      const before = await view(tx);
      await write(tx);
      const after = await view(tx);
      const changes = changesBetween(settingsJson(before), settingsJson(after));
      await this.#audit.record(tx, caller, { action, subject: name, changes });
      return after;
    };
    return patiently(() => this.#context.db.transaction(change));
  }

  async #evaluate(turn: number, tells: boolean): Promise<void> {
    const book = await this.#readBook(this.#context.db);
    const snapshot = await this.#read(book.nowMs);
    if (snapshot === null) return;
    const stepped = alertNames.flatMap((name) => stepRule(name, book, snapshot, tells));
    const messages = stepped.flatMap((one) => messageOf(one, { ...book, snapshot }));
    const isWritten = await writeEvaluation(
      this.#context.db,
      {
        turn,
        snapshot,
        changes: [...stepped.flatMap(changeOf), ...changesOfUnknown(book)],
        messages,
      },
      instant(this.#context),
    );
    if (!isWritten) return;
    for (const one of stepped) this.#log(one, { ...book, snapshot });
    if (messages.length > 0) await this.#outbox.added(alertTarget);
  }

  /** Null: Postgres takes too long to count now. The next tick tries again. */
  async #read(nowMs: number): Promise<AlertSnapshot | null> {
    try {
      const snapshot = await this.#reader.read(nowMs);
      this.#heedSlowness(null);
      return snapshot;
    } catch (error) {
      if (!(error instanceof SlowReadError)) throw error;
      this.#heedSlowness(error);
      return null;
    }
  }

  /** Logged when it changes: until it is over nobody is told of anything. */
  #heedSlowness(error: SlowReadError | null): void {
    const isTooSlow = error !== null;
    if (isTooSlow === this.#isTooSlow) return;
    this.#isTooSlow = isTooSlow;
    const { log } = this.#context;
    if (isTooSlow) {
      log.warn({ err: error }, 'alerts are not evaluated: a read takes too long; trying again');
    } else log.info('alerts are evaluated again');
  }

  #log({ name, step }: Stepped, book: AlertBook): void {
    if (step.event === null) return;
    const { severity, threshold, silencedUntil, summary, labels } = instanceView(name, book, step);
    const fields = {
      alert: name,
      severity,
      value: step.value,
      threshold,
      ...labels,
      ...(silencedUntil === null ? {} : { silenced_until: silencedUntil }),
    };
    if (step.event === 'resolved') this.#context.log.info(fields, `alert resolved: ${name}`);
    else this.#context.log.warn(fields, `alert fires: ${summary}`);
  }
}

function knownName(name: string): AlertName {
  if (isAlertName(name)) return name;
  const meant = findMeant(name, alertNames);
  const hint = meant === null ? '' : ` Did you mean ${meant}?`;
  throw new SluiceError('alert_not_found', `There is no alert rule ${name}.${hint}`);
}

function stepRule(
  name: AlertName,
  book: AlertBook,
  snapshot: AlertSnapshot,
  tells: boolean,
): Stepped[] {
  const settings = book.settings.get(name) ?? defaultAlertSettings;
  const terms = { settings, nowMs: book.nowMs, tells };
  const steps = stepAlert(ruleOf(name), snapshot, book.active.get(name) ?? [], terms);
  return steps.map((step) => ({ name, step }));
}

function changeOf({ name, step }: Stepped): AlertChange[] {
  return step.isChanged ? [{ name, label: step.label, next: step.next }] : [];
}

/** Rules of another version. */
function changesOfUnknown({ active }: AlertBook): AlertChange[] {
  return [...active]
    .filter(([name]) => !isAlertName(name))
    .flatMap(([name, alerts]) => alerts.map(({ label }) => ({ name, label, next: null })));
}

function messageOf({ name, step }: Stepped, book: AlertBook): NewMessage[] {
  if (step.tell === null) return [];
  // Of one that is over: since when it fired.
  const view = instanceView(name, book, { ...step, next: step.next ?? step.before });
  return [
    {
      messageId: `msg_${randomUUID()}`,
      target: alertTarget,
      eventType: `alert.${step.tell}`,
      eventJson: JSON.stringify({ ...alertToWire(view), state: step.tell }),
    },
  ];
}

/** The rule itself, or each queue or error code for which it is active. */
function viewsOf(name: AlertName, book: Book): AlertView[] {
  const active = book.active.get(name) ?? [];
  if (ruleOf(name).label === undefined || active.length === 0) return [ruleView(name, book)];
  return active.map((alert) => instanceView(name, book, viewed(ruleOf(name), book, alert)));
}

/** Of a rule with a label: its worst value, and that it is active when any of its labels is. */
function ruleView(name: AlertName, book: Book): AlertView {
  const rule = ruleOf(name);
  const active = book.active.get(name) ?? [];
  const alert = active.find(({ state }) => state === 'firing') ?? active[0] ?? null;
  const sign = rule.bad === 'above' ? -1 : 1;
  const [worst] = readingsOf(rule, book.snapshot).toSorted((a, b) => sign * (a.value - b.value));
  const value = book.isFresh ? (worst?.value ?? null) : null;
  return { ...instanceView(name, book, { label: '', value, next: alert }), labels: {} };
}

type Viewed = Pick<AlertStep, 'label' | 'value' | 'next'>;

function viewed(rule: AlertRule, book: Book, alert: ActiveAlert): Viewed {
  const readings = book.isFresh ? readingsOf(rule, book.snapshot) : [];
  const reading = readings.find(({ label }) => label === alert.label);
  return { label: alert.label, value: reading?.value ?? null, next: alert };
}

function instanceView(name: AlertName, book: AlertBook, { label, value, next }: Viewed): AlertView {
  const rule = ruleOf(name);
  const settings: StoredSettings = book.settings.get(name) ?? {
    ...defaultAlertSettings,
    silenceNote: null,
  };
  const silenced = isSilenced(settings, book.nowMs);
  const threshold = settings.threshold ?? rule.threshold;
  return {
    name,
    severity: rule.severity,
    state: silenced ? 'silenced' : (next?.state ?? 'ok'),
    since: next === null ? null : new Date(next.sinceMs),
    value,
    threshold,
    forSeconds: settings.forSeconds ?? rule.forSeconds,
    off: settings.off,
    silencedUntil:
      silenced && settings.silencedUntilMs !== null ? new Date(settings.silencedUntilMs) : null,
    silenceNote: silenced ? settings.silenceNote : null,
    summary: summaryOf(rule, { label, value, threshold }),
    runbook: runbookOf(name),
    labels: rule.label === undefined ? {} : { [rule.label]: label },
  };
}

/** What people set, in the names of the API. */
function settingsJson(view: AlertView): JsonObject {
  return {
    threshold: view.threshold,
    for_seconds: view.forSeconds,
    off: view.off,
    silenced_until: view.silencedUntil?.toISOString() ?? null,
    silence_note: view.silenceNote,
  };
}

/** 25 is meant as a percentage, and would never be reached. */
function refuseMoreThanAll(name: AlertName, threshold: number | null): void {
  if (threshold === null || threshold <= 1 || ruleOf(name).unit !== 'share') return;
  throw invalidField('/threshold', 'must be from 0 to 1: this rule is about a share, 0.25 is 25 %');
}
