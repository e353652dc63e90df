import { expect, it } from 'vitest';

import { terminate } from '../../lab/workers/scenarios/sigterm.js';
import { startTestFleet } from './test-fleet.js';

it('R-WO8: at SIGTERM 100 short tasks finish and 100 long ones go back at no cost', async () => {
  const fleet = await startTestFleet();
  const { exitCode, shortCompleted, longReleased, mostRetries } = await terminate(fleet);
  expect({ exitCode, shortCompleted, longReleased, mostRetries }).toEqual({
    exitCode: 0,
    shortCompleted: 100,
    longReleased: 100,
    mostRetries: 0,
  });
});
