// What the snippets of a page take for granted: names that the page introduced before, or that are the reader's own.
// Copied into the project in which the snippets run.
import { defineTask, Sluice } from 'sluice';
import { z } from 'zod';

/** The same for the compiler. */
export const declarations = `
import type { OpenOptions, Sluice, TaskDefinition } from 'sluice';

interface Answer {
  readonly text: string;
  readonly usage: { readonly total_tokens: number };
}

declare global {
  const sluice: Sluice;
  const summarize: TaskDefinition<{ text: string }, string>;
  const apply: TaskDefinition<{ step: number }, number>;
  const text: string;
  const steps: { step: number }[];
  const databaseUrl: string;
  const log: NonNullable<OpenOptions['log']>;
  function callModel(text: string, options?: { signal: AbortSignal }): Promise<Answer>;
  function notify(text: string): void;
}
`;

const callModel = async (text) => ({ text: `${text.length} letters`, usage: { total_tokens: 7 } });

export const summarize = defineTask({
  type: 'summarize',
  queue: 'gpt-4o',
  input: z.object({ text: z.string() }),
  run: async ({ text }) => (await callModel(text)).text,
});

export const apply = defineTask({ type: 'apply', run: ({ step }) => step });

/** Makes them global, for as long as the snippets run. */
export async function assume() {
  const sluice = await Sluice.open({ dataDir: ':memory:' });
  await sluice.worker([summarize, apply]).start();
  const steps = [{ step: 1 }, { step: 2 }];
  Object.assign(globalThis, { sluice, summarize, apply, text: 'to be or not', steps, callModel });
  return sluice;
}
