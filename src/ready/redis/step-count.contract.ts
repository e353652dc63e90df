import type { RedisConnection } from './connection.js';
import type { Script } from './script.js';
import { configure } from './scripts/configure.js';
import { confirm } from './scripts/confirm.js';
import { leave, listBehind, look } from './scripts/line.js';
import { offer } from './scripts/offer.js';
import { finish, refund } from './scripts/release.js';
import { remove } from './scripts/remove.js';
import { audit } from './scripts/audit.js';
import { begin, discard, open, renew, resume, wipe } from './scripts/restore.js';
import { levels, listOut, live, missing, positions } from './scripts/seeing.js';
import { take } from './scripts/take.js';

const scripts: readonly Script[] = [
  ...[
    audit,
    begin,
    configure,
    confirm,
    discard,
    finish,
    leave,
    levels,
    listBehind,
    listOut,
    live,
    look,
    missing,
  ],
  ...[offer, open, positions, refund, remove, renew, resume, take, wipe],
];

const stepsKey = 'steps';

/**
 * Every value that a command is given, and every one that it answers, is a step: a script can't go over
 * lanes without having read or written something of each.
 */
const countingCall = `
local function stepsOf(reply)
  if type(reply) ~= 'table' then return 1 end
  local steps = 1
  for _, value in ipairs(reply) do steps = steps + stepsOf(value) end
  return steps
end
local function call(...)
  local reply = redis.call(...)
  redis.call('INCRBY', '${stepsKey}', select('#', ...) + stepsOf(reply))
  return reply
end`;

function withCount({ name, text }: Script): string {
  const counting = text.replace('local call = redis.call', countingCall);
  if (counting === text) throw new Error(`the script ${name} does not begin as expected`);
  return counting;
}

interface Longest {
  forget(): void;
  found(): { readonly script: string; readonly steps: number };
}

/** The same connection, on which every script counts its steps. */
export function countSteps(connection: RedisConnection): {
  readonly counted: RedisConnection;
  readonly longest: Longest;
} {
  const bySha = new Map(scripts.map((script) => [script.sha, script]));
  const { client } = connection;
  let found = { script: '', steps: 0 };
  const run = async (script: Script, keys: number, ...rest: readonly (string | number)[]) => {
    await client.set(stepsKey, 0);
    const reply = await client.eval(withCount(script), keys, ...rest);
    const steps = Number(await client.get(stepsKey));
    if (steps > found.steps) found = { script: script.name, steps };
    return reply;
  };
  const evalsha = (sha: string, keys: number, ...rest: readonly (string | number)[]) => {
    const script = bySha.get(sha);
    if (script === undefined) throw new Error('a script that is not counted');
    return run(script, keys, ...rest);
  };
  const countingClient = new Proxy(client, {
    get: (target, name): unknown =>
      name === 'evalsha' ? evalsha : Reflect.get(target, name, target),
  });
  const counted = new Proxy(connection, {
    get: (target, name): unknown => {
      if (name === 'client') return countingClient;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return {
    counted,
    longest: {
      forget: () => {
        found = { script: '', steps: 0 };
      },
      found: () => found,
    },
  };
}
