import { bounds } from './bounds.js';
import { findJsonFault, type JsonFault } from './json-measure.js';
import type { TaskTypeDefinition } from './task-types-api.js';

export interface Trimmed {
  readonly definition: TaskTypeDefinition;
  /** What was left out, a sentence each. */
  readonly notes: readonly string[];
}

/** What is only for people to see is left out where it is too large to be kept. */
export function trimDefinition(definition: TaskTypeDefinition): Trimmed {
  const { inputSchema, retry, ...rest } = definition;
  const schemaFault =
    inputSchema === undefined ? null : findJsonFault(inputSchema, bounds.inputSchemaBytes);
  const retryFault = retry === undefined ? null : findJsonFault(retry, bounds.retryPolicyBytes);
  if (schemaFault === null && retryFault === null) return { definition, notes: [] };
  const { taskType } = definition;
  return {
    definition: {
      ...rest,
      ...(retry === undefined || retryFault !== null ? {} : { retry }),
      ...(inputSchema === undefined || schemaFault !== null ? {} : { inputSchema }),
    },
    notes: [
      ...leftOut(taskType, 'JSON Schema', schemaFault, bounds.inputSchemaBytes),
      ...leftOut(taskType, 'retry policy', retryFault, bounds.retryPolicyBytes),
    ],
  };
}

function leftOut(
  taskType: string,
  what: string,
  fault: JsonFault | null,
  maxBytes: number,
): string[] {
  if (fault === null) return [];
  const why = {
    too_large: `is larger than ${maxBytes / 1024} KiB`,
    too_deep: `is nested deeper than ${bounds.jsonDepth}`,
    not_finite: 'holds a number that is out of range',
  }[fault];
  return [`The ${what} of ${taskType} ${why}: it is not shown. Submits and runs are not affected.`];
}
