import { grantGenerations } from '../../domain/lease.js';
import { defaultQueueSettings } from '../../domain/queue-settings.js';
import { requestUnit } from '../../domain/token-bucket.js';
import { thresholdsOf } from './ageing-thresholds.js';
import { stepsAtOnce, stepsOf, stepsOfTake } from './step-bound.js';

/** An offer to more windows that are not plain is answered `split`; of those with capabilities half as many. */
export const windowsAtOnce = 250;

/** Levels that one script tells. */
export const levelsAtOnce = 500;

const { lowToMediumMs, lowToHighMs, mediumToHighMs } = thresholdsOf(defaultQueueSettings.ageing);

/** All that scripts share with this side. `price` says what things cost, in steps: see `step-bound.ts`. */
export const constants = [
  luaTable('price', stepsOf),
  luaTable('constant', {
    stepsAtOnce,
    stepsOfTake,
    windowsAtOnce,
    levelsAtOnce,
    grantGenerations,
    requestUnit,
    maxReady: defaultQueueSettings.maxReady,
    lowToMedium: lowToMediumMs,
    lowToHigh: lowToHighMs,
    mediumToHigh: mediumToHighMs,
  }),
].join('');

function luaTable(name: string, values: Readonly<Record<string, number | string>>): string {
  const fields = Object.entries(values).map(([key, value]) => `  ${key} = ${luaValue(value)},\n`);
  return `local ${name} = {\n${fields.join('')}}\n\n`;
}

function luaValue(value: number | string): string {
  if (value === Number.POSITIVE_INFINITY) return 'math.huge';
  return JSON.stringify(value);
}
