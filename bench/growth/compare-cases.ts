import type { Lab } from '../../lab/shared/lab.js';
import { noted, type Row } from '../../lab/shared/scenario.js';
import { compare } from './compare.js';
import { Stand, type Case, type Held, type Ready } from './stand.js';

/** All of them on one Postgres, rounds by turns; the first round of each counts for nobody. */
export async function compareCases(lab: Lab, ready: Ready, cases: readonly Case[]): Promise<Row[]> {
  const stands: Stand[] = [];
  try {
    for (const one of cases) {
      lab.progress.say(`  ${ready}: ${one.title}`);
      stands.push(await Stand.open(lab.postgresUrl, ready, one));
    }
    await runRounds(lab, ready, stands);
    const held = await Promise.all(stands.map((stand) => stand.end()));
    return [...compare(ready, stands), heldRow(ready, cases, held)];
  } finally {
    await Promise.all(stands.map((stand) => stand[Symbol.asyncDispose]()));
  }
}

async function runRounds(lab: Lab, ready: Ready, stands: readonly Stand[]): Promise<void> {
  const rounds = lab.number('rounds');
  using progress = lab.progress.steps(`${ready}, rounds`, (rounds + 1) * stands.length);
  for (const stand of stands) {
    await stand.warmUp();
    progress.step();
  }
  for (let round = 0; round < rounds; round += 1) {
    // Whoever comes later finds a warmer machine: they change places.
    for (const stand of round % 2 === 0 ? stands : stands.toReversed()) {
      await stand.round();
      progress.step();
    }
  }
}

function heldRow(ready: Ready, cases: readonly Case[], held: readonly Held[]): Row {
  const text = (megabytes: number) => `${megabytes.toFixed(1)} MB`;
  const own = held.map(({ ownMegabytes }) => ownMegabytes);
  const inRedis = held.flatMap(({ redisMegabytes }) => redisMegabytes ?? []);
  const titles = cases.map(({ title }) => title).join('; ');
  return noted({
    what: `${ready}, held at the end${inRedis.length === 0 ? '' : ', and in Redis'}: ${titles}`,
    measured: [own, inRedis]
      .filter(({ length }) => length > 0)
      .map((values) => values.map(text).join(', '))
      .join('; '),
    numbers: { own, inRedis },
  });
}
