// One process of `npm run footprint`, without anything else in it: opens a data folder or instances in memory,
// prints what that took as JSON, one object a line.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [root, dataDir, count, idleSeconds, ends] = process.argv.slice(2);
const began = now();
const { defineTask, Sluice } = await import(pathToFileURL(join(root, 'dist/index.js')).href);
const ping = defineTask({ type: 'ping', run: () => 'pong' });

for (let opened = 1; opened <= Number(count); opened += 1) {
  const from = opened === 1 ? began : now();
  const sluice = await Sluice.open({ dataDir });
  const open = since(from);
  await sluice.worker([ping]).start();
  const handle = await sluice.submit(ping, {});
  await handle.result();
  const firstTask = since(from);
  await new Promise((resolve) => setTimeout(resolve, Number(idleSeconds) * 1_000));
  console.log(JSON.stringify({ open, firstTask, residentBytes: process.memoryUsage().rss }));
  if (ends === 'killed') setInterval(() => undefined, 60_000);
  else await sluice.close();
}

function now() {
  const { user, system } = process.cpuUsage();
  return { wallMs: performance.now(), cpuMs: (user + system) / 1_000 };
}

function since(from) {
  const { wallMs, cpuMs } = now();
  return { wallMs: wallMs - from.wallMs, cpuMs: cpuMs - from.cpuMs };
}
