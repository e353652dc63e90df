// The worker process of http.mjs: node http-worker.mjs URL. What begins in one turn of its event loop is
// told together.
import { setImmediate } from 'node:timers';
import { connect } from 'sluice';
import { benchTask } from './task.mjs';

const sluice = connect(process.argv[2]);
let worker;
let begun = [];

const task = benchTask((index, atMs) => {
  if (begun.length === 0) setImmediate(tell);
  begun.push([index, atMs]);
});

function tell() {
  process.send(begun);
  begun = [];
}

process.on('message', async (request) => {
  if (request === 'start') {
    worker = sluice.worker([task]);
    await worker.start();
  } else {
    await worker.stop();
  }
  process.send('done');
});
process.on('disconnect', () => process.exit());
