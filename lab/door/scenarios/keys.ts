import { NodeHttpApi } from '../../../src/client/node-http-api.js';
import type { Scope } from '../../../src/domain/scopes.js';
import type { CreatedKey } from '../../../src/protocol/keys-api.js';
import type { Lab } from '../../shared/lab.js';
import { median, spreadOf } from '../../shared/measure.js';
import {
  count,
  judged,
  ms,
  noted,
  percent,
  type Row,
  type Scenario,
} from '../../shared/scenario.js';
import { Fleet } from '../../workers/fleet.js';
import { answersOf, Flood } from '../flood.js';

const callers = 16;
const warmUpMs = 1_000;
/** R-HA4: every server refuses it within a second. */
const wantedRevokedMs = 1_000;

export const keys: Scenario = {
  name: 'keys',
  about:
    'what it costs to look at the key of every call, and how soon a revoked one is known elsewhere',
  run: async (lab) => [await costRow(lab), await revocationRow(lab)],
};

/** Two servers with a database each, by turns: once a key was made, nobody comes in without one. */
async function costRow(lab: Lab): Promise<Row> {
  await using open = await Fleet.start(lab.postgresUrl);
  await using locked = await Fleet.start(lab.postgresUrl);
  const { key } = await makeKey(locked, ['read'], null);
  const without: number[] = [];
  const withKey: number[] = [];
  for (let round = 0; round <= lab.size(4, 1); round += 1) {
    const rates = [
      await readRate(lab, open, {}),
      await readRate(lab, locked, bearer(key)),
    ] as const;
    // The first turn of each side does not count.
    if (round === 0) continue;
    without.push(rates[0]);
    withKey.push(rates[1]);
  }
  const share = median(withKey) / median(without);
  return noted({
    what: `reads a second with ${callers} callers: without keys; with a key; share`,
    measured: `${count(median(without))}; ${count(median(withKey))}; ${percent(share)}`,
    numbers: { without: median(without), withKey: median(withKey), share },
  });
}

async function readRate(
  lab: Lab,
  fleet: Fleet,
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const report = await new Flood(fleet.file('reads.json'), {
    url: fleet.url(0),
    path: '/api/v1/scaling',
    headers,
    load: { clients: callers },
    warmUpMs,
    durationMs: lab.size(3_000, 1_000),
  }).done();
  return answersOf(report, 200).count / report.seconds;
}

async function revocationRow(lab: Lab): Promise<Row> {
  await using fleet = await Fleet.start(lab.postgresUrl, { servers: 2, ready: 'redis' });
  const admin = await makeKey(fleet, ['admin'], null);
  const delays: number[] = [];
  for (let round = 0; round < lab.size(20, 3); round += 1) {
    const key = await makeKey(fleet, ['read'], admin.key);
    await fleet.until('the other server to know the key', () => isLetIn(fleet.url(1), key.key));
    await new NodeHttpApi(fleet.url(0), { apiKey: admin.key }).revokeKey(key.id);
    const beganMs = performance.now();
    while (await isLetIn(fleet.url(1), key.key));
    delays.push(performance.now() - beganMs);
  }
  const { median: middle, most } = spreadOf(delays);
  return judged(
    {
      what: `from the answer to a revocation at one server to the first 401 at another, ${delays.length} keys: median; most`,
      measured: `${ms(middle)}; ${ms(most)}`,
      numbers: { median: middle, most },
    },
    `≤ ${ms(wantedRevokedMs)}`,
    most <= wantedRevokedMs,
  );
}

function makeKey(
  fleet: Fleet,
  scopes: readonly Scope[],
  adminKey: string | null,
): Promise<CreatedKey> {
  const api = new NodeHttpApi(fleet.url(0), adminKey === null ? {} : { apiKey: adminKey });
  return api.createKey({ name: 'lab', scopes });
}

async function isLetIn(url: string, key: string): Promise<boolean> {
  const response = await fetch(`${url}/api/v1/scaling`, { headers: bearer(key) });
  await response.text();
  return response.status === 200;
}

function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` };
}
