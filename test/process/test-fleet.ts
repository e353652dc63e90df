import { inject, onTestFinished } from 'vitest';

import type { ServiceOptions } from '../../lab/shared/service.js';
import { Fleet } from '../../lab/workers/fleet.js';

/** Servers and workers of the lab, put away when the test is over. */
export async function startTestFleet(options: Partial<ServiceOptions> = {}): Promise<Fleet> {
  if (inject('distIsStale')) throw new Error('dist is older than src: npm run build');
  const fleet = await Fleet.start(inject('postgresUrl'), options);
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  return fleet;
}
