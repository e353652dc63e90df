// Whatever may come over the wire, at a real server: npm run fuzz -- --help
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Lab } from '../shared/lab.js';
import { printRows } from '../shared/results.js';
import { writePage } from './document-page.js';
import { measureNames } from './names.js';
import { namesRow, rowsOf, type Memory } from './rows.js';
import { fuzz } from './run.js';
import { FuzzedService } from './service.js';
import type { Tally } from './tally.js';
import type { Row } from '../shared/scenario.js';

const help = `npm run fuzz -- [--requests N] [--seed N] [--parallel N] [--names] [--write]

  --requests N   how many (20,000)
  --seed N       the same seed sends the same requests (1)
  --parallel N   how many at once (8)
  --names        also rounds of names that nobody used before, which take some minutes
  --write        the figures into docs/hostile-input-measured.md
`;

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '8' },
    names: { type: 'boolean', default: false },
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
  const { tally, memory } = await fuzzServer(lab);
  const rows = [...rowsOf(tally, memory), ...(values.names ? await namesRows(lab) : [])];
  printRows(rows);
  for (const fault of tally.faults) console.log(`\n${fault}`);
  if (values.write) await writePage(commandText(), rows, tally, values.names);
  return rows.every(({ verdict }) => verdict !== 'missed') ? 0 : 1;
}

async function fuzzServer(lab: Lab): Promise<{ tally: Tally; memory: Memory }> {
  await using service = await FuzzedService.open(lab, { ready: 'redis' });
  const requests = Number(values.requests);
  const kept: number[] = [];
  const tally = await fuzz(service.url(0), {
    requests,
    seed: Number(values.seed),
    parallel: Number(values.parallel),
    onBatch: async (done) => {
      if (done >= (requests * (kept.length + 1)) / 4) kept.push(await service.keptMegabytes());
      const megabytes = kept.map((value) => `${value.toFixed(1)} MB`).join(', ');
      lab.progress.say(`${done} of ${requests}, kept ${megabytes}`);
    },
  });
  return { tally, memory: { kept, peak: service.peakMegabytes() } };
}

async function namesRows(lab: Lab): Promise<Row[]> {
  return [
    namesRow('redis', await measureNames(lab, 'redis')),
    namesRow('memory', await measureNames(lab, 'memory')),
  ];
}

function commandText(): string {
  const { requests, seed, names } = values;
  return `npm run fuzz -- --requests ${requests} --seed ${seed}${names ? ' --names' : ''}`;
}

process.exitCode = await main();
