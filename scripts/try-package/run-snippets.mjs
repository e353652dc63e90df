// node run-snippets.mjs FILE…: runs each compiled snippet in turn. Copied into the project.
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { assume } from './assumed.mjs';

const patienceMs = 60_000;

const sluice = await assume();
for (const file of process.argv.slice(2)) {
  const late = delay(patienceMs, null, { ref: false }).then(() => {
    throw new Error(`${file} did not end within ${patienceMs} ms`);
  });
  try {
    await Promise.race([import(pathToFileURL(file).href), late]);
  } catch (error) {
    console.error(`${file} failed:`, error);
    process.exit(1);
  }
}
await sluice.close();
