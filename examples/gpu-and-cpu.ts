// Tasks that need a GPU go to the worker that has one. The others go to any worker.
//
//   npx tsx examples/gpu-and-cpu.ts
//
// Both workers are in one process here. On machines of their own each is one command:
//   sluice worker --module ./tasks.js --capabilities gpu
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { defineTask, Sluice } from 'sluice';

const embed = defineTask({
  type: 'embed',
  capabilities: ['gpu'],
  input: z.object({ image: z.string() }),
  run: async (_, { signal }) => delay(100, [0.1, 0.2, 0.3], { signal }), // your GPU works here
});

const thumbnail = defineTask({
  type: 'thumbnail',
  input: z.object({ image: z.string() }),
  run: async ({ image }, { signal }) => delay(100, `small-${image}`, { signal }),
});

await using sluice = await Sluice.open();
const tasks = [embed, thumbnail];
const cpu = sluice.worker(tasks, { name: 'cpu-1', concurrency: 2 });
const gpu = sluice.worker(tasks, { name: 'gpu-1', concurrency: 2, capabilities: ['gpu'] });
await Promise.all([cpu.start(), gpu.start()]);

const images = Array.from({ length: 20 }, (_, index) => `photo-${index + 1}.jpg`);
const handles = await Promise.all([
  ...images.slice(0, 6).map((image) => sluice.submit(embed, { image })),
  ...images.map((image) => sluice.submit(thumbnail, { image })),
]);

const ran = { embed: { 'cpu-1': 0, 'gpu-1': 0 }, thumbnail: { 'cpu-1': 0, 'gpu-1': 0 } };
for (const handle of handles) {
  const { taskType, assignedWorkerId } = await handle.ended();
  ran[taskType as keyof typeof ran][assignedWorkerId === gpu.id ? 'gpu-1' : 'cpu-1'] += 1;
}
console.table(ran);
