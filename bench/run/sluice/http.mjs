// Sluice as a service: `sluice serve` and one worker as processes of their own, submits from here.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from 'sluice';
import { openLivingTasks } from './living-tasks.mjs';
import { enqueue, submit } from './task.mjs';

const cli = join(import.meta.dirname, '../../../dist/cli/main.js');
const workerProgram = join(import.meta.dirname, 'http-worker.mjs');

export async function open({ postgresUrl }) {
  const server = await serve(postgresUrl);
  const sluice = connect(server.url);
  const living = await openLivingTasks(postgresUrl);
  const workers = [];
  return {
    enqueue: (count) => enqueue(sluice, count),
    submit: (index) => submit(sluice, index),
    startWorker: async (onStart) => {
      const worker = workers[0] ?? (await forkWorker(server.url));
      workers[0] = worker;
      return worker.start(onStart);
    },
    isDrained: living.isDrained,
    close: async () => {
      for (const worker of workers) await worker.end();
      await living.close();
      await server.end();
    },
  };
}

async function serve(postgresUrl) {
  const args = ['serve', '--port', '0', '--database-url', postgresUrl, '--log-level', 'error'];
  const child = spawn(process.execPath, [cli, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await urlFrom(child);
  return { url, end: () => ended(child) };
}

async function urlFrom(child) {
  const gone = once(child, 'exit').then(() => {
    throw new Error('sluice serve ended before it was ready');
  });
  const ready = new Promise((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [url] = /http:\/\/[\d.:]+/.exec(line) ?? [];
      if (/\bready\b/.test(line) && url !== undefined) resolve(url);
    });
  });
  gone.catch(() => undefined);
  return Promise.race([ready, gone]);
}

/** One process for the whole round; each start in it is told by its index and time. */
async function forkWorker(url) {
  const child = fork(workerProgram, [url]);
  let listener = () => undefined;
  let answered = () => undefined;
  child.on('message', (message) => {
    if (message === 'done') answered();
    else for (const [index, atMs] of message) listener(index, atMs);
  });
  const ask = async (request) => {
    const answer = new Promise((resolve) => {
      answered = resolve;
    });
    child.send(request);
    await answer;
  };
  return {
    start: async (onStart) => {
      listener = onStart;
      await ask('start');
      return () => ask('stop');
    },
    end: () => ended(child),
  };
}

async function ended(child) {
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}
