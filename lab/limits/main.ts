// What the limits hold to, in real processes: npm run limits -- --help
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Lab } from './lab.js';
import { describeMachine, printRows, Results } from './results.js';
import type { Row, Scenario } from './scenario.js';
import { change } from './scenarios/change.js';
import { concurrency } from './scenarios/concurrency.js';
import { drain } from './scenarios/drain.js';
import { flush } from './scenarios/flush.js';
import { neighbour } from './scenarios/neighbour.js';
import { rates } from './scenarios/rates.js';
import { tokens } from './scenarios/tokens.js';

const scenarios: readonly Scenario[] = [
  rates,
  tokens,
  concurrency,
  change,
  neighbour,
  flush,
  drain,
];
const names = scenarios.map(({ name }) => name);

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    long: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    printHelp();
    return 0;
  }
  const unknown = values.only.filter((name) => !names.includes(name));
  if (unknown.length > 0)
    return refuse(`There is no ${unknown.join(', ')}; there are ${names.join(', ')}.`);
  if (values.write && values.quick)
    return refuse('A quick run measures nothing worth writing down.');
  if (!isBuilt()) return refuse('dist could not be built.');

  const results = new Results(names, values.quick);
  const chosen = scenarios.filter(
    ({ name }) => values.only.length === 0 || values.only.includes(name),
  );
  const missed = await runAll(chosen, results);
  if (values.write) await results.writeDocument();
  console.log(
    `${missed === 0 ? 'Nothing was missed' : `${missed} missed`}. Numbers: ${results.path}`,
  );
  return missed === 0 ? 0 : 1;
}

async function runAll(chosen: readonly Scenario[], results: Results): Promise<number> {
  await using lab = await Lab.open(values);
  const rows: Row[] = [];
  for (const { name, about, run } of chosen) {
    lab.progress.say(`${name}: ${about}`);
    const found = await run(lab);
    printRows(found);
    results.keep({
      name,
      about,
      measuredAt: new Date().toISOString().slice(0, 10),
      machine: describeMachine(),
      rows: found,
    });
    rows.push(...found);
  }
  return rows.filter(({ verdict }) => verdict === 'missed').length;
}

/** The processes run from dist; yesterday's build would be measured in silence. */
function isBuilt(): boolean {
  const build = join(import.meta.dirname, '../../scripts/build.mjs');
  return spawnSync(process.execPath, [build], { stdio: 'inherit' }).status === 0;
}

function printHelp(): void {
  const width = Math.max(...names.map((name) => name.length));
  console.log(`npm run limits -- [--only NAME]… [--quick] [--long] [--write]

  --only NAME  one scenario; may be given several times
  --quick      seconds instead of minutes: whether it works, not what it measures
  --long       also 20 a minute, over 10 minutes
  --write      the table into docs/limits-measured.md, with what was measured last of the others

${scenarios.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join('\n')}`);
}

function refuse(sentence: string): number {
  console.error(sentence);
  return 2;
}

// Children notice that their channel is closed; a guard ends each throw-away server.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.exitCode = await main();
