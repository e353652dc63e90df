import { SluiceError } from '../domain/errors.js';
import { costFaults } from '../domain/limit-faults.js';
import { bounds } from './bounds.js';
import { findJsonFault, type JsonFault } from './json-measure.js';
import { invalidField, invalidRequest } from './problem-wire.js';
import type { TaskDraftWire } from './tasks-schema.js';

/** Throws for what the schema of a draft can't say. `path` is where the draft stands in its request. */
export function refuseDraftFaults(wire: TaskDraftWire, taskBytes: number, path = ''): void {
  if (wire.run_at !== undefined && wire.delay_seconds !== undefined) {
    throw invalidField(`${path}/delay_seconds`, 'and run_at exclude each other');
  }
  const faults = costFaults(wire.cost ?? {}, `${path}/cost`);
  if (faults.length > 0) throw invalidRequest(faults);
  const fault = findJsonFault(wire, taskBytes);
  if (fault !== null) throw unkeepable(fault, taskBytes, path);
}

function unkeepable(fault: JsonFault, taskBytes: number, path: string): SluiceError {
  switch (fault) {
    case 'too_large': {
      const message = `A task is at most ${taskBytes} bytes of JSON`;
      return new SluiceError('payload_too_large', message, { errors: [{ path, message }] });
    }
    case 'too_deep':
      return invalidField(`${path}/parameters`, `is nested deeper than ${bounds.jsonDepth}`);
    case 'not_finite':
      return invalidField(`${path}/parameters`, 'holds a number that is out of range');
  }
}
