import type { FieldError } from '../domain/errors.js';
import { usageFaults } from '../domain/limit-faults.js';
import type { Cost } from '../domain/queue-settings.js';
import { bounds } from '../protocol/bounds.js';
import { NonRetriableError } from './errors.js';

const unitPattern = new RegExp(`^(?!\\.{1,2}$)[A-Za-z0-9._:/-]{1,${bounds.nameLength}}$`);

/**
 * What the server would refuse, the result with it, is thrown where it was said. Another attempt
 * would say the same.
 */
export function checkedUsage(usage: Cost): Cost {
  const faults = [...usageFaults(usage), ...unitFaults(usage)];
  if (faults.length === 0) return { ...usage };
  const told = faults.map(({ path, message }) => `${path} ${message}`).join('; ');
  throw new NonRetriableError(`usage() was given what is no usage: ${told}`, {
    code: 'INVALID_USAGE',
  });
}

function unitFaults(usage: Cost): FieldError[] {
  return Object.keys(usage)
    .filter((unit) => !unitPattern.test(unit))
    .map((unit) => ({ path: `/usage/${unit}`, message: 'is not the name of a unit' }));
}
