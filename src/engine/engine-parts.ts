import { ActiveWorkers } from './active-workers.js';
import { Alerts } from './alerts.js';
import { ApiKeys } from './api-keys.js';
import { Admission } from './admission.js';
import { AttemptControl } from './attempt-control.js';
import { Audit } from './audit.js';
import { Bench } from './bench.js';
import { Cancel } from './cancel.js';
import { Checkpoints } from './checkpoints.js';
import { Circuits } from './circuits.js';
import { Claim } from './claim.js';
import { ClusterEvents } from './cluster-events.js';
import { instant, type EngineContext } from './context.js';
import { DeadLetterPatterns } from './dead-letter-patterns.js';
import { EndAttempts } from './end-attempts.js';
import { Estimate } from './estimate.js';
import { Explain } from './explain.js';
import { Feeder } from './feeder.js';
import { Fleet } from './fleet.js';
import { Forecasts } from './forecasts.js';
import { Health } from './health.js';
import { Heartbeat } from './heartbeat.js';
import { Hearing } from './hearing.js';
import { Lanes } from './lanes.js';
import { Line } from './line.js';
import { LiveQueues } from './live-queues.js';
import { LostEntries } from './lost-entries.js';
import { Measurements } from './measurements.js';
import { MinuteSummary } from './minute-summary.js';
import { News } from './news.js';
import { PartitionUpkeep } from './partition-upkeep.js';
import { Poll } from './poll.js';
import { PollWaiters } from './poll-waiters.js';
import { PushbackLedger } from './pushback-ledger.js';
import { QueueControl } from './queue-control.js';
import { QueueDirectory } from './queue-directory.js';
import { Read } from './read.js';
import { RecentWork } from './recent-work.js';
import { Replay } from './replay.js';
import { Report } from './report.js';
import { Retention } from './retention.js';
import { Sampling } from './sampling.js';
import { SettingsFence } from './settings-fence.js';
import { Scaler } from './scaler.js';
import { Serving, type Role, type ServingParts } from './serving.js';
import { Slots } from './slots.js';
import { Submit } from './submit.js';
import { Sweeper } from './sweeper.js';
import { Tallies } from './tallies.js';
import { TaskTypes } from './task-types.js';
import { Counters } from './counters.js';
import { WakeRelay } from './wake-relay.js';
import { WebhookOutbox } from './webhook-outbox.js';
import { WorkerJudge } from './worker-judge.js';

export type EngineParts = ReturnType<typeof joinParts>;

/** Every use case with the others that it needs. */
export function joinParts(
  context: EngineContext,
  role: Role,
  { isClosing }: Pick<ServingParts, 'isClosing'>,
) {
  const counters = new Counters(context);
  const hearing = new Hearing(context);
  const keys = new ApiKeys(
    context,
    (error) => {
      serving.noteError(error);
    },
    () => {
      hearing.lost();
    },
  );
  const types = new TaskTypes(context, (error) => {
    serving.noteError(error);
  });
  const relay = new WakeRelay(context.ready);
  const waiters = new PollWaiters(context.settings.wakeOrder, (wake) => relay.add(wake));
  const checkpoints = new Checkpoints(context);
  const queues = new QueueDirectory(context, checkpoints);
  const fleet = new Fleet(context, hearing.serverId);
  const bench = new Bench(context, (workerId) => {
    waiters.wakeIfDenied(workerId);
  });
  const slots = new Slots(context);
  const news = new News(context, {
    fleet,
    waiters,
    queues,
    bench,
    onBenched: (item) => {
      judge.heardBenched(item);
    },
    onFailing: (item) => {
      judge.heardFailing(item);
    },
    onRefused: (item) => {
      circuits.heardRefused(item);
    },
  });
  const tallies = new Tallies();
  const judge = new WorkerJudge(context, bench, news, tallies);
  const pushbacks = new PushbackLedger(context);
  const circuits = new Circuits(context, {
    queues,
    news,
    pushbacks,
    onOpened: (queue) => {
      judge.forgive(queue);
    },
  });
  const recent = new RecentWork();
  const feeder = new Feeder(context, queues, recent);
  const endAttempts = new EndAttempts(context, feeder, slots);
  const admission = new Admission(context, queues);
  const claim = new Claim(context, {
    endAttempts,
    slots,
    recent,
    waiters,
    offerAgain: (taskIds) => feeder.offerAgain(taskIds),
    onRefused: (entries) => {
      fence.refusedSoon(entries);
    },
  });
  const isServing = (): boolean => serving.notServing() === null;
  const lanes = new Lanes(context, queues, isServing);
  const submit = new Submit(context, {
    recent,
    claim,
    admission,
    feeder,
    queues,
    counters,
    lanes,
    types,
    isServing,
  });
  const report = new Report(context, { endAttempts, feeder, slots, judge, circuits, recent });
  const attempts = new AttemptControl(context, endAttempts, feeder);
  const heartbeat = new Heartbeat(context, { fleet, endAttempts, news, hearing });
  const cancel = new Cancel(context, { fleet, news, feeder, slots });
  const replay = new Replay(context, feeder);
  const read = new Read(context);
  const estimate = new Estimate(context, queues, counters);
  const live = new LiveQueues(context.ready);
  const active = new ActiveWorkers(context);
  const explain = new Explain(context, { read, estimate, live, active });
  const health = new Health(context, explain, hearing);
  const line = new Line(context, queues, isServing);
  const measurements = new Measurements(context, { admission, bench, line, live, queues });
  const forecasts = new Forecasts(context, {
    active,
    counters,
    estimate,
    line,
    live,
    queues,
    notServing: (): string | null => serving.notServing(),
  });
  const scaler: Scaler = new Scaler(context, {
    active,
    live,
    queues,
    counters,
    notServing: (): string | null => serving.notServing(),
  });
  const outbox = new WebhookOutbox(context);
  const audit = new Audit(() => instant(context));
  const sources = { line, counters, queues, health, scaler };
  const alerts = new Alerts(context, sources, outbox, audit);
  const queueControl = new QueueControl(context, {
    admission,
    queues,
    line,
    live,
    counters,
    news,
    audit,
  });
  const lostEntries = new LostEntries(context, feeder, counters);
  const fence = new SettingsFence(context, queues, lostEntries);
  const sweeper = new Sweeper(context, {
    endAttempts,
    feeder,
    lostEntries,
    news,
    hearing,
    slots,
    tallies,
  });
  const patterns = new DeadLetterPatterns(context);
  const serving = new Serving(context, role, {
    alerts,
    bench,
    checkpoints,
    circuits,
    counters,
    feeder,
    fleet,
    hearing,
    lostEntries,
    measurements,
    partitions: new PartitionUpkeep(context),
    patterns,
    pushbacks,
    queues,
    retention: new Retention(context, feeder, lanes),
    sampling: new Sampling(context, { active, line, queues, counters }),
    summary: new MinuteSummary(context, counters, line),
    sweeper,
    types,
    waiters,
    isClosing,
  });
  const poll = new Poll(context, {
    fleet,
    queues,
    bench,
    giveWayMs: (workerId) => circuits.giveWayMs(workerId),
    claim,
    feeder,
    waiters,
    notServing: () => serving.notServing(),
    release: (held) => attempts.release(held),
    rebuild: () => {
      serving.rebuildSoon();
    },
  });
  context.events.subscribe((event) => {
    counters.note(event);
    patterns.note(event);
  });
  context.ready.onWake((wake) => waiters.wake(wake));
  context.ready.onReturn(() => {
    queues.doubt();
    if (context.mode === 'replicas') waiters.lookAgain();
  });
  return {
    admission,
    alerts,
    attempts,
    audit,
    bench,
    cancel,
    clusterEvents: new ClusterEvents(context),
    explain,
    fleet,
    forecasts,
    health,
    heartbeat,
    isServing,
    keys,
    line,
    measurements,
    news,
    outbox,
    patterns,
    poll,
    pushbacks,
    queueControl,
    queues,
    read,
    replay,
    report,
    scaler,
    serving,
    submit,
    counters,
    tallies,
    types,
    waiters,
  };
}
