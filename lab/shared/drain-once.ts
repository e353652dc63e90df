import type { JsonObject } from '../../src/domain/json.js';
import type { Lab } from './lab.js';
import type { Service } from './service.js';

export interface Load {
  readonly taskType: string;
  readonly parameters?: JsonObject;
  readonly length: number;
}

/** Tasks per second, from the first claim to the last end, by the clock of Postgres. */
export async function drainOnce(
  lab: Lab,
  service: Service,
  queue: string,
  load: Load,
): Promise<number> {
  const { length, ...draft } = load;
  await service.put(queue, { paused: true });
  await service.submit(Array.from({ length }, () => ({ ...draft, queue })));
  await service.api().resumeQueue(queue);
  await lab.progress.until(queue, length, async () => length - (await service.countLiving()));
  const [row] = await service.database.query<{ rate: number }>(
    `select count(*) / extract(epoch from max(ended_at) - min(started_at))::float8 as rate
     from sluice.task_history where queue = $1`,
    [queue],
  );
  return row?.rate ?? 0;
}
