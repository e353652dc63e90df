import { Registry } from 'prom-client';
import { SluiceError } from '../domain/errors.js';
import type { Engine } from '../engine/open-engine.js';
import { Refreshed } from '../engine/refreshed.js';
import type { SluiceApi } from '../protocol/api.js';
import { AgeSummary } from './metrics/age-summary.js';
import { showFleet } from './metrics/fleet-gauges.js';
import { LabelledQueues } from './metrics/labelled-queues.js';
import { showQueues } from './metrics/queue-gauges.js';
import { showReplica } from './metrics/replica-gauges.js';
import { replicaStatus } from './replica-status.js';
import { countTallies, countThrottling } from './metrics/tally-counters.js';
import { countTransitions } from './metrics/task-metrics.js';
import type { EventSource, Metrics } from './ports.js';

export type MeasuredEngine = Pick<SluiceApi, 'getScaling'> &
  Pick<Engine, 'tallies'> &
  Partial<Pick<Engine, 'leadership' | 'mailFlow'>> & {
    readonly measurements: Pick<
      Engine['measurements'],
      'get' | 'configured' | 'lookAt' | 'throttling'
    >;
  };

/** Counters are fed by events and tallies; gauges are read when they are scraped, and are those of all servers. */
export function createMetrics(
  engine: MeasuredEngine,
  events: Pick<EventSource, 'subscribe'>,
  refused: () => Readonly<Record<string, number>> = () => ({}),
): Metrics {
  const { measurements, tallies } = engine;
  const registry = new Registry();
  const transitions = countTransitions(registry);
  events.subscribe(transitions.note);
  countTallies(registry, tallies, refused);
  countThrottling(registry, measurements.throttling);
  const [showTheFleet, showTheQueues] = [showFleet(registry), showQueues(registry)];
  // None of these where no server leads others.
  let showTheReplica: ReturnType<typeof showReplica> | null = null;
  const ages = new AgeSummary(registry);
  const labelled = new LabelledQueues();
  // To look how many workers there should be may take long, and nobody needs it to the second.
  const desired = new Refreshed(() => findDesired(engine));
  return {
    contentType: registry.contentType,
    text: async () => {
      transitions.tell();
      const measured = await measurements.get();
      const names = labelled.choose(measured.line.queues, measurements.configured());
      ages.show(measured.line);
      showTheFleet(measured, await desired.get());
      showTheQueues(measured.line, names, await measurements.lookAt(names));
      const { leadership = null, mailFlow = null } = engine;
      const replica = replicaStatus({ leadership, mailFlow });
      if (replica !== null) (showTheReplica ??= showReplica(registry))(replica);
      return registry.metrics();
    },
  };
}

/** Null where nobody knows: this server does not serve yet. */
async function findDesired(api: Pick<SluiceApi, 'getScaling'>): Promise<number | null> {
  try {
    return (await api.getScaling()).desired;
  } catch (error) {
    if (error instanceof SluiceError) return null;
    throw error;
  }
}
