import type { StandardSchemaV1 } from '@standard-schema/spec';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { AttemptError } from '../domain/attempt-error.js';
import type { JsonObject, JsonValue } from '../domain/json.js';
import { defineTask, type TaskDefinition } from './define-task.js';
import type { TaskHandle } from './task-handle.js';

interface Seen<Input, Result> {
  readonly input: Input;
  readonly result: Awaited<ReturnType<TaskHandle<Result>['result']>>;
}

/** What submit takes and what a handle answers with, as types. */
function seenBy<Input extends object, Result>(
  _definition: TaskDefinition<Input, Result>,
): Seen<Input, Result> {
  return {} as Seen<Input, Result>;
}

describe('R-WO11: types follow from the definition', () => {
  const embed = defineTask({
    type: 'embed',
    input: z.object({ text: z.string(), size: z.string().default('3').transform(Number) }),
    run: async ({ text, size }, { signal, attempt }) => {
      expectTypeOf(text).toEqualTypeOf<string>();
      expectTypeOf(size).toEqualTypeOf<number>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(attempt).toEqualTypeOf<number>();
      return { vector: [size], at: new Date(), note: undefined as string | undefined };
    },
  });

  it('run gets what the schema makes, submit takes what the schema takes', () => {
    expectTypeOf(seenBy(embed).input).toEqualTypeOf<{
      text: string;
      size?: string | undefined;
    }>();
  });

  it('a handle answers with what run returned, as JSON keeps it', () => {
    expectTypeOf(seenBy(embed).result).toEqualTypeOf<{
      vector: number[];
      at: string;
      note: string | undefined;
    }>();
  });

  it('a handler without a result answers null, one of unknown type with some JSON', () => {
    const nothing = defineTask({ type: 'nothing', run: () => undefined });
    const unknown = defineTask({ type: 'unknown', run: (): unknown => 1 });
    expectTypeOf(seenBy(nothing).result).toEqualTypeOf<null>();
    expectTypeOf(seenBy(unknown).result).toEqualTypeOf<JsonValue>();
  });

  it('without a schema the input is any JSON object', () => {
    const echo = defineTask({ type: 'echo', run: ({ text }) => text ?? null });
    expectTypeOf(seenBy(echo).input).toEqualTypeOf<JsonObject>();
    expectTypeOf(seenBy(echo).result).toEqualTypeOf<JsonValue>();
  });

  it('any Standard Schema will do', () => {
    const schema = {} as StandardSchemaV1<{ a: string }, { b: number }>;
    const task = defineTask({ type: 'other', input: schema, run: ({ b }) => b });
    expectTypeOf(seenBy(task).input).toEqualTypeOf<{ a: string }>();
    expectTypeOf(seenBy(task).result).toEqualTypeOf<number>();
  });
});

describe('R-RE4: a type has a policy of its own', () => {
  const run = () => null;

  it('whose types are known', () => {
    const task = defineTask({
      type: 'parse',
      maxRetries: 4,
      retry: {
        codes: { PARSE_ERROR: false, FLAKY: 1 },
        delaySeconds: (retry, error) => {
          expectTypeOf(retry).toEqualTypeOf<number>();
          expectTypeOf(error).toEqualTypeOf<AttemptError>();
          return retry;
        },
      },
      run,
    });
    expectTypeOf(seenBy(task).result).toEqualTypeOf<null>();
    defineTask({ type: 'parse', retry: { delaySeconds: [5, 30, 120] }, run });
  });

  it('which is refused where it is defined when it makes no sense', () => {
    expect(() => defineTask({ type: 'parse', retry: { codes: { A: -1 } }, run })).toThrow(
      'parse: retry.codes.A must be false or a number of retries, not -1',
    );
    // @ts-expect-error: true is no number of retries.
    expect(() => defineTask({ type: 'parse', retry: { codes: { A: true } }, run })).toThrow();
  });
});
