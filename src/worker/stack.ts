import { isPushBack, type AttemptError } from '../domain/attempt-error.js';
import { findJsonFault } from '../protocol/json-measure.js';
import { bounds } from '../protocol/bounds.js';
import { causesOf, isObject, type Fields } from './error-fields.js';

/** Of one error. A handler may have raised `Error.stackTraceLimit`. */
const maxFrames = 50;
/** What is looked at of a stack: it may have been overwritten with anything. */
const maxRead = 64 * 1024;
const maxHeadLength = 300;

/**
 * The error with where it was thrown, and its causes, in `details.stack`: at most 8 KiB. Frames of Node itself say
 * nothing about a handler and are left out. A push-back has none: it comes in floods, and is no fault of the code.
 * Details that are no object stay as the handler gave them.
 */
export function withStack(error: AttemptError, thrown: unknown): AttemptError {
  const { code, details = {} } = error;
  if (isPushBack(code) || !isObject(details) || Array.isArray(details)) return error;
  const stack = stackOf(thrown);
  if (stack === null) return error;
  // A stack that the handler gives of its own accord counts.
  const told = { stack, ...details };
  return findJsonFault(told, bounds.taskBytes) === null ? { ...error, details: told } : error;
}

/** Null: nothing that was thrown has a stack. */
function stackOf(thrown: unknown): string | null {
  try {
    const parts = causesOf(thrown).map(partOf);
    if (parts.every((part) => part.frames.length === 0)) return null;
    const text = parts
      .map(({ head, frames }, at) =>
        [`${at === 0 ? '' : 'Caused by '}${head}`, ...frames].join('\n'),
      )
      .join('\n');
    return cutToBytes(text, bounds.stackBytes);
  } catch {
    // A getter that throws.
    return null;
  }
}

function partOf({ name, message, stack }: Fields) {
  const lines = typeof stack === 'string' ? stack.slice(0, maxRead).split('\n') : [];
  const frames = lines.filter((line) => /^\s+at /.test(line) && !line.includes('node:internal/'));
  const head = [name, message].filter((text) => typeof text === 'string' && text !== '').join(': ');
  return { head: head.slice(0, maxHeadLength), frames: frames.slice(0, maxFrames) };
}

/** At the end of a line: half a frame misleads. */
function cutToBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  let bytes = 0;
  const kept = text.split('\n').filter((line) => {
    bytes += Buffer.byteLength(line) + 1;
    return bytes <= maxBytes;
  });
  return kept.join('\n');
}
