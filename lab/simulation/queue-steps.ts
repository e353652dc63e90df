import type { RateLimit } from '../../src/domain/queue-settings.js';
import type { QueueDraft } from '../../src/protocol/queues-api.js';
import type { Random } from './random.js';
import type { Server } from './server.js';
import type { Step } from './steps.js';
import type { World } from './world.js';

export const queueNames = ['plain', 'slow', 'narrow', 'tokens', 'left', 'right'] as const;
type QueueName = (typeof queueNames)[number];

/** The limit that `left` and `right` share. */
const sharedLimit = 'account';

/** Each queue has its rules and keeps them, with other numbers now and then. */
export function setUpQueues(world: World, server: Server, random: Random): void {
  putLimit(world, server, random);
  for (const name of queueNames) putQueue(world, server, name, random);
}

function putQueue(world: World, server: Server, name: QueueName, random: Random): void {
  const change = { ...rulesOf(name, random), maxReady: random.whole(1, 4) };
  if (name === 'left' || name === 'right') world.rules.share(name, sharedLimit);
  const asked = world.rules.changeQueue(name);
  const wasServing = server.isServing;
  world.ask({
    what: `put ${name} ${JSON.stringify(change)}`,
    server,
    use: (engine) => engine.putQueue(name, change),
    heard: ({ settings }) => {
      asked.acknowledged(settings, countsFrom(world, server, wasServing));
    },
    refused: asked.refused,
  });
}

function rulesOf(name: QueueName, random: Random): QueueDraft {
  switch (name) {
    case 'slow':
      return { limits: [limitOf('requests', random)] };
    case 'narrow':
      return { maxConcurrency: random.whole(1, 3) };
    case 'tokens':
      return { limits: [limitOf('tokens', random)] };
    case 'left':
    case 'right':
      return { limits: [{ use: sharedLimit }] };
    case 'plain':
      return {};
  }
}

function limitOf(unit: 'requests' | 'tokens', random: Random): RateLimit {
  const rate = unit === 'requests' ? random.whole(2, 6) : random.whole(5, 20);
  const burst = random.chance(0.2) ? random.whole(1, 3) : null;
  return { unit, rate, perSeconds: random.whole(1, 4), burst };
}

function putLimit(world: World, server: Server, random: Random): void {
  const limit = limitOf('requests', random);
  const asked = world.rules.changeShared(sharedLimit);
  const wasServing = server.isServing;
  world.ask({
    what: `put limit ${sharedLimit} ${JSON.stringify(limit)}`,
    server,
    use: (engine) => engine.putLimit(sharedLimit, limit),
    heard: (made) => {
      asked.acknowledged(made, countsFrom(world, server, wasServing));
    },
    refused: asked.refused,
  });
}

/** At once with the server that serves; asked of another one, nobody knows how soon. */
function countsFrom(world: World, server: Server, wasServing: boolean): number {
  return wasServing && server.isServing ? world.nowMs : Number.POSITIVE_INFINITY;
}

function changeQueue(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server !== null) putQueue(world, server, random.pick(queueNames), random);
}

function changeLimit(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server !== null) putLimit(world, server, random);
}

function pause(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server === null) return;
  const name = random.pick(queueNames);
  const asked = world.rules.changePause(name);
  const wasServing = server.isServing;
  world.ask({
    what: `pause ${name}`,
    server,
    use: (engine) => engine.pauseQueue(name),
    heard: () => {
      asked.acknowledged(true, countsFrom(world, server, wasServing));
    },
    refused: asked.refused,
  });
}

function resume(world: World, random: Random): void {
  const server = random.find(world.openServers);
  if (server !== null) resumeQueue(world, server, random.pick(queueNames));
}

export function resumeQueue(world: World, server: Server, name: QueueName): void {
  const asked = world.rules.changePause(name);
  world.ask({
    what: `resume ${name}`,
    server,
    use: (engine) => engine.resumeQueue(name),
    heard: () => {
      asked.acknowledged(false, world.nowMs);
    },
    refused: asked.refused,
  });
}

export const queueSteps: readonly Step[] = [
  { name: 'put queue', weight: 2, take: changeQueue },
  { name: 'put limit', weight: 0.5, take: changeLimit },
  { name: 'pause', weight: 1, take: pause },
  { name: 'resume', weight: 3, take: resume },
];
