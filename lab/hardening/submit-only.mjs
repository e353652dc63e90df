// A process that only submits, all the time: node submit-only.mjs DATABASE_URL. Asked, it says what came of it.
import { Sluice } from '../../dist/index.js';

const lanes = 8;
const sluice = await Sluice.open({ databaseUrl: process.argv[2], role: 'submit' });
const answers = { accepted: 0, slowestMs: 0, refused: {} };

process.once('disconnect', () => process.exit());
process.on('message', () => process.send(answers));
for (let lane = 0; lane < lanes; lane += 1) void submit();
console.log('it is ready');

async function submit() {
  for (;;) {
    const beganMs = performance.now();
    try {
      await sluice.submit({ type: 'noop' }, {}, { queue: 'submit-only' });
      answers.accepted += 1;
    } catch (error) {
      const code = error.code ?? error.message;
      answers.refused[code] = (answers.refused[code] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    answers.slowestMs = Math.max(answers.slowestMs, performance.now() - beganMs);
  }
}
