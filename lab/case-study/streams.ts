import { publishedShape } from './batch-plan.js';
import { BatchSystem } from './batch-system.js';
import type { Case, CaseRun } from './case.js';
import { CaseClock } from './case-clock.js';
import { ModelServer, type Call } from './model-server.js';
import { batchCapacityPerSecond } from './simulate-batch.js';
import { SluiceStand } from './sluice-stand.js';
import { drawWork, type Arrival } from './work.js';

/** Enough that its slowest ones are as many as they should be. */
const capacityTasks = 20_000;

/** Tasks per second that the batch system can do at most. */
export function capacityOf({ seed }: Case): number {
  return batchCapacityPerSecond(drawWork(seed, capacityTasks), publishedShape);
}

export interface Stream extends CaseRun {
  readonly calls: readonly Call[];
}

export interface Streams {
  readonly batch: Stream;
  readonly sluice: Stream;
}

interface StreamOptions {
  readonly title: string;
  readonly timeScale: number;
  /** What happens to the models meanwhile; to those of either side at once. */
  readonly meanwhile?: (models: readonly ModelServer[], clock: CaseClock) => Promise<void>;
}

/** Both at once, each with models of its own: the same arrives at the same time at either. */
export async function runStreams(
  { postgresUrl, progress, fleet }: Case,
  arrivals: readonly Arrival[],
  { title, timeScale, meanwhile = () => Promise.resolve() }: StreamOptions,
): Promise<Streams> {
  await using stand = await SluiceStand.start({ postgresUrl, ...fleet });
  await using models = await ModelServer.start();
  const clock = new CaseClock(timeScale);
  const system = new BatchSystem(models, publishedShape, clock);
  const [batch, sluice] = await Promise.all([
    system.run(arrivals),
    stand.run(arrivals, clock),
    meanwhile([models, stand.models], clock),
    progress.until(title, arrivals.length * 2, async () => {
      return system.answeredAt.size + (await stand.models.countDone());
    }),
  ]);
  return {
    batch: { title: `${title}: batch`, rans: batch, calls: await models.log() },
    sluice: { title: `${title}: sluice`, rans: sluice.rans, calls: await stand.models.log() },
  };
}
