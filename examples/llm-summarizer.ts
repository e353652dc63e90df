// Summarises each section of a document with a language model, within the limits of its account.
//
//   npx tsx examples/llm-summarizer.ts [document.md]
//
// It asks the service that OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL name. Without a key or an
// address it asks a stand-in on this machine, which allows less than it should: it answers 429, and
// now and then 500.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { startChatService } from './chat-service.js';
import { defineTask, Sluice } from 'sluice';

const { OPENAI_API_KEY = '', OPENAI_BASE_URL = '', OPENAI_MODEL = 'gpt-4o-mini' } = process.env;
const isNamed = OPENAI_API_KEY !== '' || OPENAI_BASE_URL !== '';
await using standIn = isNamed
  ? null
  : await startChatService({ requestsPerSecond: 5, failEvery: 8 });
const service = standIn?.url ?? (OPENAI_BASE_URL || 'https://api.openai.com/v1');

const guide = new URL('../docs/guide.md', import.meta.url);
const maxAnswerTokens = 100;

const summarize = defineTask({
  type: 'summarize',
  queue: OPENAI_MODEL,
  input: z.object({ title: z.string(), text: z.string() }),
  timeoutSeconds: 60,
  retry: {
    codes: { EMPTY_ANSWER: 1, HTTP_500: 2 },
    delaySeconds: [1, 5, 30],
  },
  run: async ({ title, text }, { signal, usage }) => {
    const response = await fetch(`${service}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${OPENAI_API_KEY}` },
      body: JSON.stringify({
        model: OPENAI_MODEL,
        max_tokens: maxAnswerTokens,
        messages: [
          { role: 'system', content: 'Summarise the text in one sentence.' },
          { role: 'user', content: text },
        ],
      }),
      signal,
    });
    if (!response.ok) throw await refusalOf(response, title);
    const { choices, usage: used } = (await response.json()) as ChatCompletion;
    usage({ tokens: used.total_tokens });
    const summary = choices[0].message.content;
    if (summary === '') throw Object.assign(new Error('It said nothing'), { code: 'EMPTY_ANSWER' });
    return summary;
  },
});

interface ChatCompletion {
  readonly choices: readonly [{ readonly message: { readonly content: string } }];
  readonly usage: { readonly total_tokens: number };
}

/** From its status, headers and body Sluice knows what to do: 429, Retry-After, a wrong key, no quota. */
async function refusalOf(response: Response, title: string): Promise<Error> {
  const { status, headers } = response;
  const body = await response.text();
  console.log(`      ${title}: the service answered ${status}`);
  return Object.assign(new Error(`${status}: ${body}`), { status, headers, body });
}

await using sluice = await Sluice.open();
await sluice.queue(OPENAI_MODEL).set({ limits: { rpm: 500, tpm: 200_000 } });
await sluice.worker([summarize], { concurrency: 100 }).start();

const document = readFileSync(process.argv[2] ?? guide, 'utf8');
const sections = document.split(/^## /m).slice(1);
let ended = 0;
const rows = await Promise.all(
  sections.map(async (text) => {
    const [title = ''] = text.split('\n');
    const estimate = Math.ceil(text.length / 4) + maxAnswerTokens;
    const cost = { tokens: estimate };
    const handle = await sluice.submit(summarize, { title, text }, { cost });
    const { status, attempt, retryCount, usage, result, error } = await handle.ended();
    ended += 1;
    console.log(`${String(ended).padStart(2)}/${sections.length} ${title}: ${status}`);
    const said = ((result ?? error?.message) as string).slice(0, 40);
    const postponed = attempt - 1 - retryCount;
    return { title, status, postponed, retries: retryCount, estimate, used: usage?.tokens, said };
  }),
);
console.table(rows);
