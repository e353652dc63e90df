// Runs one server for as long as whoever started it lives, then ends it and removes its folder.
// They may be killed in any way: the operating system closes the channel for them.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';

const { command, args, user, folder, stopSignal, keep } = JSON.parse(process.argv[2]);

let stopping = false;
let ended = false;

const server = spawn(command, args, {
  ...user,
  cwd: folder,
  stdio: ['ignore', 'inherit', 'inherit'],
});
server.on('error', (error) => {
  console.error(error.message);
  onEnd();
});
server.on('exit', onEnd);
process.on('SIGTERM', stop);
process.on('disconnect', () => {
  if (!keep) stop();
});

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
