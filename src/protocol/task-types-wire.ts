import { timestampFromWire, timestampToWire } from './common-wire.js';
import { defined } from './defined.js';
import { writeRequest, type FieldsOf } from './fields.js';
import type { Page } from './page.js';
import type {
  ListedTaskType,
  TaskTypeDefinition,
  TaskTypeView,
  ToldRetryPolicy,
} from './task-types-api.js';
import type {
  ListedTaskTypeWire,
  TaskTypeDefinitionWire,
  TaskTypePageWire,
  TaskTypeWire,
} from './task-types-schema.js';

type RetryWire = NonNullable<TaskTypeDefinitionWire['retry']>;

export function definitionFromWire(wire: TaskTypeDefinitionWire): TaskTypeDefinition {
  return defined({
    taskType: wire.task_type,
    queue: wire.queue,
    priority: wire.priority,
    capabilities: wire.required_capabilities,
    timeoutSeconds: wire.timeout_seconds,
    maxRetries: wire.max_retries,
    cost: wire.cost,
    retry: wire.retry === undefined ? undefined : retryFromWire(wire.retry),
    inputSchema: wire.input_schema,
  });
}

export const definitionFields = {
  taskType: 'task_type',
  queue: 'queue',
  priority: 'priority',
  capabilities: 'required_capabilities',
  timeoutSeconds: 'timeout_seconds',
  maxRetries: 'max_retries',
  cost: 'cost',
  retry: {
    wire: 'retry',
    members: {
      codes: 'codes',
      delaySeconds: 'delay_seconds',
    } satisfies FieldsOf<ToldRetryPolicy>,
  },
  inputSchema: 'input_schema',
} as const satisfies FieldsOf<TaskTypeDefinition>;

export function definitionToWire(definition: TaskTypeDefinition): TaskTypeDefinitionWire {
  return writeRequest(definitionFields, definition) as TaskTypeDefinitionWire;
}

function listedTaskTypeToWire(type: ListedTaskType): ListedTaskTypeWire {
  return {
    task_type: type.taskType,
    queue: type.queue,
    priority: type.priority,
    required_capabilities: type.capabilities.slice(),
    timeout_seconds: type.timeoutSeconds,
    max_retries: type.maxRetries,
    cost: type.cost === null ? null : { ...type.cost },
    retry: type.retry === null ? null : retryToWire(type.retry),
    version: type.version,
    defined_at: timestampToWire(type.definedAt),
    seen_at: timestampToWire(type.seenAt),
    has_input_schema: type.hasInputSchema,
  };
}

function listedTaskTypeFromWire(wire: ListedTaskTypeWire): ListedTaskType {
  return {
    taskType: wire.task_type,
    queue: wire.queue,
    priority: wire.priority,
    capabilities: wire.required_capabilities,
    timeoutSeconds: wire.timeout_seconds,
    maxRetries: wire.max_retries,
    cost: wire.cost,
    retry: wire.retry === null ? null : retryFromWire(wire.retry),
    version: wire.version,
    definedAt: timestampFromWire(wire.defined_at),
    seenAt: timestampFromWire(wire.seen_at),
    hasInputSchema: wire.has_input_schema,
  };
}

export function taskTypeToWire(type: TaskTypeView): TaskTypeWire {
  return { ...listedTaskTypeToWire(type), input_schema: type.inputSchema };
}

export function taskTypeFromWire(wire: TaskTypeWire): TaskTypeView {
  return { ...listedTaskTypeFromWire(wire), inputSchema: wire.input_schema };
}

export function taskTypePageToWire(page: Page<ListedTaskType>): TaskTypePageWire {
  return { items: page.items.map(listedTaskTypeToWire), next_cursor: page.nextCursor };
}

export function taskTypePageFromWire(wire: TaskTypePageWire): Page<ListedTaskType> {
  return { items: wire.items.map(listedTaskTypeFromWire), nextCursor: wire.next_cursor };
}

export function retryToWire({ codes, delaySeconds }: ToldRetryPolicy): RetryWire {
  return defined({
    codes: codes === undefined ? undefined : { ...codes },
    delay_seconds: delaySeconds?.slice(),
  });
}

export function retryFromWire({ codes, delay_seconds: delaySeconds }: RetryWire): ToldRetryPolicy {
  return defined({ codes, delaySeconds });
}
