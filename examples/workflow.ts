// Three steps in order: fetch, summarise, publish. A step that fails halts the ones behind it; when the
// cause is mended, it is replayed and the workflow goes on.
//
//   npx tsx examples/workflow.ts
import { z } from 'zod';
import { defineTask, NonRetriableError, Sluice } from 'sluice';

await using sluice = await Sluice.open();
let modelIsUp = false;

const fetchPage = defineTask({
  type: 'fetch-page',
  input: z.object({ url: z.string() }),
  run: async ({ url }, { signal }) => (await fetch(url, { signal })).text(),
});

const summarize = defineTask({
  type: 'summarize-page',
  input: z.object({ pageFrom: z.string() }),
  run: async ({ pageFrom }) => {
    const page = await sluice.task<string>(pageFrom).result();
    if (!modelIsUp) throw new NonRetriableError('the model is switched off');
    return `${page.split(' ').slice(0, 4).join(' ')} …`; // call your model here
  },
});

const publish = defineTask({
  type: 'publish-summary',
  input: z.object({ summaryFrom: z.string() }),
  run: async ({ summaryFrom }) => {
    const summary = await sluice.task<string>(summaryFrom).result();
    return `published: ${summary}`;
  },
});

await sluice.worker([fetchPage, summarize, publish]).start();

// Each step is told the id of the task whose result it reads: it has ended before the step begins.
const url = 'data:text/plain,To be or not to be, that is the question';
const workflow = { workflowId: `page-${Date.now()}` };
const page = await sluice.submit(fetchPage, { url }, workflow);
const summary = await sluice.submit(summarize, { pageFrom: page.id }, workflow);
const published = await sluice.submit(publish, { summaryFrom: summary.id }, workflow);

const { status, error } = await summary.ended();
console.log(`fetch:     ${(await page.status()).status}`);
console.log(`summarise: ${status}, ${error?.message ?? ''}`);
const { reasons } = await sluice.api.explainTask(published.id);
console.log(`publish:   waits, ${reasons.map(({ detail }) => detail).join('; ')}`);

modelIsUp = true;
await sluice.api.replayTask(summary.id);
console.log('replayed');
console.log(`summarise: ${await summary.result()}`);
console.log(`publish:   ${await published.result()}`);
