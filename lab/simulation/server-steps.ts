import type { Random } from './random.js';
import type { Step } from './steps.js';
import type { World } from './world.js';

const mostServers = 2;
const moments = ['before', 'after'] as const;

function crash(world: World, random: Random): void {
  random.find(world.servers)?.crash();
}

/** Between two statements, or between a statement and its answer. */
function crashSoon(world: World, random: Random): void {
  const server = random.find(world.servers);
  if (server === null) return;
  const moment = random.pick(moments);
  const fault = { moment, after: random.whole(0, 12) };
  server.db.plan({ kind: 'crash', ...fault });
  world.trace.note(`  ${server.name} will crash ${fault.moment} statement ${fault.after + 1}`);
}

function cutSoon(world: World, random: Random): void {
  const server = random.find(world.servers);
  if (server === null) return;
  const moment = random.pick(moments);
  const fault = { moment, after: random.whole(0, 6) };
  server.db.plan({ kind: 'cut', ...fault });
  world.trace.note(`  ${server.name} will be cut ${fault.moment} statement ${fault.after + 1}`);
}

function goAway(world: World, random: Random): void {
  const server = random.find(world.servers);
  if (server === null) return;
  const isAway = random.chance(0.5);
  server.db.setAway(isAway);
  world.trace.note(`  Postgres is ${isAway ? 'away' : 'there'} for ${server.name}`);
}

function launch(world: World): void {
  if (world.servers.length < mostServers) world.launch();
}

function close(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server === null) return;
  world.trace.note(`  ${server.name} is asked to end`);
  server.close().catch(() => {
    server.crash();
  });
}

function changePace(world: World, random: Random): void {
  world.slownessMs = random.chance(0.5) ? 0 : random.whole(1, 60);
  world.trace.note(`  statements take up to ${world.slownessMs} ms each way`);
}

async function pass(world: World, random: Random): Promise<void> {
  await world.pass(random.whole(200, 2_500));
}

async function freeze(world: World, random: Random): Promise<void> {
  const ms = random.whole(500, 9_000);
  world.trace.note(`  everything is frozen for ${ms} ms`);
  await world.freeze(ms);
}

export const serverSteps: readonly Step[] = [
  { name: 'pass', weight: 10, take: pass },
  { name: 'freeze', weight: 0.7, take: freeze },
  { name: 'launch', weight: 5, take: launch },
  { name: 'crash', weight: 0.8, take: crash },
  { name: 'crash soon', weight: 1.5, take: crashSoon },
  { name: 'cut soon', weight: 2, take: cutSoon },
  { name: 'away', weight: 1, take: goAway },
  { name: 'close', weight: 0.5, take: close },
  { name: 'pace', weight: 1, take: changePace },
];
