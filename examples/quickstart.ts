import { z } from 'zod';
import { defineTask, Sluice } from 'sluice';

const summarize = defineTask({
  type: 'summarize',
  queue: 'gpt-4o',
  input: z.object({ text: z.string() }),
  run: async ({ text }) => `${text.split(' ').length} words`, // call your model here
});

await using sluice = await Sluice.open();
await sluice.worker([summarize], { concurrency: 100 }).start();
const handle = await sluice.submit(summarize, { text: 'to be or not' }, { priority: 'high' });
console.log(await handle.result());
