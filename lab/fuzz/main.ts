// Whatever may come over the wire, at a real server: npm run fuzz -- --help
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Lab } from '../shared/lab.js';
import { printRows } from '../shared/results.js';
import { processMegabytes } from '../workers/process-memory.js';
import { writePage } from './document-page.js';
import { rowsOf } from './rows.js';
import { fuzz } from './run.js';
import { FuzzedService } from './service.js';

const help = `npm run fuzz -- [--requests N] [--seed N] [--parallel N] [--write]

  --requests N   how many (20,000)
  --seed N       the same seed sends the same requests (1)
  --parallel N   how many at once (8)
  --write        the figures into docs/hostile-input-measured.md
`;

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '8' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(help);
    return 0;
  }
  const build = join(import.meta.dirname, '../../scripts/build.mjs');
  if (spawnSync(process.execPath, [build], { stdio: 'inherit' }).status !== 0) return 2;
  await using lab = await Lab.open({ quick: false, long: false });
  await using service = await FuzzedService.open(lab);
  const [pid] = service.serverPids;
  if (pid === undefined) throw new Error('no server was started');

  const [requests, seed, parallel] = [values.requests, values.seed, values.parallel].map(Number);
  const samples: number[] = [];
  const tally = await fuzz(service.url(0), {
    requests: requests ?? NaN,
    seed: seed ?? NaN,
    parallel: parallel ?? NaN,
    onBatch: (done) => {
      samples.push(processMegabytes(pid, 'VmRSS'));
      lab.progress.say(`${done} of ${values.requests}, ${tallyText(samples)}`);
    },
  });
  const rows = rowsOf(tally, { samples, peak: processMegabytes(pid, 'VmHWM') });
  printRows(rows);
  for (const fault of tally.faults) console.log(`\n${fault}`);
  const command = `npm run fuzz -- --requests ${values.requests} --seed ${values.seed}`;
  if (values.write) await writePage(command, rows, tally);
  return rows.every(({ verdict }) => verdict !== 'missed') ? 0 : 1;
}

function tallyText(samples: readonly number[]): string {
  return `${Math.round(samples.at(-1) ?? 0)} MB`;
}

process.exitCode = await main();
