import { SluiceError, type FieldError } from '../domain/errors.js';
import { costFaults } from '../domain/limit-faults.js';
import { priorities } from '../domain/priority.js';
import { bounds } from '../protocol/bounds.js';
import { optionErrors, type KindsOf } from '../protocol/options.js';
import { describeErrors } from '../protocol/problem-wire.js';
import { labelErrors, nameErrors, wholeErrors } from '../protocol/values.js';
import type { RetryPolicy } from './apply-retry-policy.js';
import { checkRetryPolicy } from './check-retry-policy.js';
import type { TaskHandler } from './handler.js';

const kinds: KindsOf<TaskHandler> = {
  type: 'string',
  queue: 'string',
  priority: priorities,
  capabilities: 'array',
  timeoutSeconds: 'any',
  maxRetries: 'any',
  cost: 'object',
  // Some libraries' schemas are functions.
  input: 'any',
  retry: 'any',
  run: 'function',
};

const retryKinds: KindsOf<RetryPolicy> = { codes: 'any', delaySeconds: 'any' };

/**
 * Throws for a definition that a submit or a registration would be refused for, in the same words: it is better found
 * where it is written.
 */
export function checkDefinition(definition: TaskHandler): void {
  const errors = definitionErrors(definition);
  if (errors.length > 0) {
    const detail = `${nameOf(definition)}: ${describeErrors(errors)}`;
    throw new SluiceError('invalid_request', detail, { errors });
  }
  checkRetryPolicy(definition.type, definition.retry);
}

function definitionErrors(definition: TaskHandler): FieldError[] {
  const errors = optionErrors(kinds, definition);
  if (errors.some(({ path }) => path === '/options')) return errors;
  const seen = new Set(errors.map(({ path }) => path));
  const values = valueErrors(definition).filter(({ path }) => !seen.has(firstOf(path)));
  return [...errors, ...values];
}

function valueErrors(definition: TaskHandler): FieldError[] {
  const { type, queue, capabilities, timeoutSeconds, maxRetries, cost, retry, run } =
    definition as Partial<TaskHandler>;
  return [
    ...(type === undefined ? [needed('/type')] : nameErrors('/type', type)),
    ...(run === undefined ? [needed('/run')] : []),
    ...given(queue, (value) => nameErrors('/queue', value)),
    ...given(capabilities, capabilityErrors),
    ...given(timeoutSeconds, (value) =>
      wholeErrors('/timeoutSeconds', value, 1, bounds.timeoutSeconds),
    ),
    ...given(maxRetries, (value) => wholeErrors('/maxRetries', value, 0, bounds.maxRetries)),
    ...given(cost, (value) => costFaults(value)),
    ...given(retry, retryErrors),
  ];
}

function capabilityErrors(capabilities: readonly unknown[]): FieldError[] {
  if (!Array.isArray(capabilities)) return [];
  return capabilities.flatMap((one, index) => labelErrors(`/capabilities/${index}`, one));
}

/** The rest of a policy is told in sentences of its own. */
function retryErrors(retry: RetryPolicy): FieldError[] {
  if (!isObject(retry)) return [];
  const errors = optionErrors(retryKinds, retry);
  return errors.map(({ path, message }) => ({ path: `/retry${path}`, message }));
}

function given<Value>(
  value: Value | undefined,
  errorsOf: (value: Value) => FieldError[],
): FieldError[] {
  return value === undefined ? [] : errorsOf(value);
}

/** JavaScript may give anything. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOf(definition: unknown): string {
  const type = isObject(definition) ? definition.type : undefined;
  return typeof type === 'string' && type !== '' ? type : 'A task definition';
}

function needed(path: string): FieldError {
  return { path, message: 'is needed' };
}

function firstOf(path: string): string {
  return path.split('/', 2).join('/');
}
