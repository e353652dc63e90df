// Runs one server for as long as whoever started it lives, then ends it and removes its folder.
// They may be killed in any way: the operating system closes the channel for them.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';

const { command, args, user, folder, stopSignal, keep } = JSON.parse(process.argv[2]);

let stopping = false;
let ended = false;
let server = run();

process.on('SIGTERM', stop);
process.on('disconnect', () => {
  if (!keep) stop();
});
process.on('message', ({ signal, restart }) => {
  if (signal !== undefined) {
    server.kill(signal);
    process.send('signalled');
  }
  if (restart && ended && !stopping) server = run();
});

function run() {
  ended = false;
  const child = spawn(command, args, {
    ...user,
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  child.on('error', (error) => {
    console.error(error.message);
    onEnd();
  });
  child.on('exit', onEnd);
  return child;
}

function stop() {
  stopping = true;
  if (ended) leave();
  else server.kill(stopSignal);
}

// A server that ended by itself leaves its log for the message that says so.
function onEnd() {
  ended = true;
  if (stopping) leave();
  else if (process.connected) process.send('ended');
}

function leave() {
  rmSync(folder, { recursive: true, force: true });
  process.exit();
}
