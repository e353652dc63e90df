import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { definitionsOf } from './definitions.js';

const run = () => null;

describe('what a worker tells of its task types', () => {
  it('is their defaults, their retry policy and the JSON Schema of what a submit takes', () => {
    const { definitions, notes } = definitionsOf([
      {
        ...{
          type: 'chat',
          queue: 'gpt-4o',
          priority: 'high',
          capabilities: ['gpu'],
          maxRetries: 2,
        },
        ...{ timeoutSeconds: 30, cost: { tokens: 9 }, run },
        retry: { codes: { NO_MODEL: false, BUSY: 3 }, delaySeconds: [1, 5] },
        input: z.object({
          text: z.string().transform((text) => text.length),
          n: z.int().default(1),
        }),
      },
      { type: 'plain', retry: { delaySeconds: () => 4 }, run },
    ]);
    expect(notes).toEqual([]);
    expect(definitions).toEqual([
      {
        ...{ taskType: 'chat', queue: 'gpt-4o', priority: 'high', capabilities: ['gpu'] },
        ...{ maxRetries: 2, timeoutSeconds: 30, cost: { tokens: 9 } },
        retry: { codes: { NO_MODEL: false, BUSY: 3 }, delaySeconds: [1, 5] },
        inputSchema: expect.objectContaining({
          type: 'object',
          properties: expect.objectContaining({ text: { type: 'string' } }) as unknown,
          required: ['text'],
        }) as unknown,
      },
      { taskType: 'plain', retry: {} },
    ]);
  });

  it('leaves out a schema that its library cannot write as JSON Schema, or that has no such library', () => {
    const standard = {
      version: 1,
      vendor: 'own',
      validate: (value: unknown) => ({ value }),
    } as const;
    const unable = () => {
      throw new Error('no such target');
    };
    const { definitions } = definitionsOf([
      { type: 'dates', input: z.object({ at: z.date() }), run },
      { type: 'own', input: { '~standard': standard }, run },
      {
        type: 'unable',
        input: { '~standard': { ...standard, jsonSchema: { input: unable } } },
        run,
      },
    ] as Parameters<typeof definitionsOf>[0]);
    expect(definitions).toEqual([
      { taskType: 'dates' },
      { taskType: 'own' },
      { taskType: 'unable' },
    ]);
  });

  it('leaves out what is too large to be kept, and says so', () => {
    const wide = z.object(
      Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`field_${n}`, z.string()])),
    );
    const codes = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`CODE_${n}`, 1]));
    const { definitions, notes } = definitionsOf([
      { type: 'wide', queue: 'q', input: wide, retry: { codes }, run },
    ]);
    expect(definitions).toEqual([{ taskType: 'wide', queue: 'q' }]);
    expect(notes).toEqual([
      expect.stringMatching(/^The JSON Schema of wide is larger than 16 KiB/),
      expect.stringMatching(/^The retry policy of wide is larger than 1 KiB/),
    ]);
  });
});
