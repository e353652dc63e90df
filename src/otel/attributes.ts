import { SpanStatusCode, type Attributes, type Span } from '@opentelemetry/api';
import { SluiceError } from '../domain/errors.js';

export type Operation = 'send' | 'wait' | 'process' | 'settle';

/** `send gpt-4o`, as the conventions for messaging name spans; without its queue while that is not known. */
export function spanName(operation: Operation, queue: string | undefined): string {
  return queue === undefined ? operation : `${operation} ${queue}`;
}

/** What the conventions for messaging want on every span and every measurement. */
export function messaging(operation: Operation, queue: string | undefined): Attributes {
  return {
    'messaging.system': 'sluice',
    'messaging.operation.name': operation,
    // The conventions know no operation that waits.
    ...(operation === 'wait' ? {} : { 'messaging.operation.type': operation }),
    ...(queue === undefined ? {} : { 'messaging.destination.name': queue }),
  };
}

export function fail(span: Span, type: string, message?: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message === undefined ? {} : { message }) });
}

/** Few different ones, since measurements carry it. */
export function errorType(error: unknown): string {
  if (error instanceof SluiceError) return error.code;
  return error instanceof Error ? error.name : 'Error';
}
