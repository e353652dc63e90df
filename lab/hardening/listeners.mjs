// Listeners of the event stream, in a process of their own: node listeners.mjs PORT COUNT
import { connect } from 'node:net';

const [port, count] = process.argv.slice(2).map(Number);
let open = 0;
let closed = 0;
let bytes = 0;

for (let n = 0; n < count; n += 1) {
  const socket = connect(port, '127.0.0.1', () => {
    socket.write('GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  });
  socket.once('data', () => {
    open += 1;
    if (open === count) console.log('listeners are ready');
  });
  socket.on('data', (piece) => (bytes += piece.length));
  socket.on('error', () => undefined);
  socket.on('close', () => (closed += 1));
}

process.on('message', () => process.send({ open, closed, bytes }));
process.on('disconnect', () => process.exit());
