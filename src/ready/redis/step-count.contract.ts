import type { RedisConnection } from './connection.js';
import type { Script } from './script.js';
import { scripts } from './scripts.js';

const allScripts: readonly Script[] = Object.values(scripts);

const stepsKey = 'steps';

/**
 * Every value that a command is given, and every one that it answers, is a step, and so is every table that is
 * unpacked: a script can't go over lanes or limits without having read, unpacked or written something of each.
 */
const countingCall = `
local call
do
local function count(steps) redis.call('INCRBY', '${stepsKey}', steps) end
local function stepsOf(reply)
  if type(reply) ~= 'table' then return 1 end
  local steps = 1
  for _, value in ipairs(reply) do steps = steps + stepsOf(value) end
  return steps
end
local function tablesOf(value)
  if type(value) ~= 'table' then return 0 end
  local steps = 1
  for _, part in pairs(value) do steps = steps + tablesOf(part) end
  return steps
end
-- One name is all that there is room for: a function of Lua has 200 local variables at most.
call = setmetatable({
  unpacked = function(value)
    count(tablesOf(value))
    return value
  end,
}, {
  __call = function(_, ...)
    local reply = redis.call(...)
    count(select('#', ...) + stepsOf(reply))
    return reply
  end,
})
end`;

function withCount({ name, text }: Script): string {
  const counting = text
    .replace('local call = redis.call', countingCall)
    .replaceAll(
      /(?:cmsgpack\.unpack|cjson\.decode)\((?:[^()]|\([^()]*\))*\)/g,
      'call.unpacked($&)',
    );
  if (counting === text) throw new Error(`the script ${name} does not begin as expected`);
  return counting;
}

interface Longest {
  forget(): void;
  found(): { readonly script: string; readonly steps: number };
  /** By script, the most that one call of it made. */
  all(): Readonly<Record<string, number>>;
}

type Run = (
  script: Script,
  keys: number,
  ...rest: readonly (string | number)[]
) => Promise<unknown>;

/** The same connection, on which scripts run in another way. */
function withScripts(connection: RedisConnection, run: Run): RedisConnection {
  const bySha = new Map(allScripts.map((script) => [script.sha, script]));
  const evalsha = (sha: string, keys: number, ...rest: readonly (string | number)[]) => {
    const script = bySha.get(sha);
    if (script === undefined) throw new Error('a script that is not listed');
    return run(script, keys, ...rest);
  };
  const client = new Proxy(connection.client, {
    get: (target, name): unknown =>
      name === 'evalsha' ? evalsha : Reflect.get(target, name, target),
  });
  return new Proxy(connection, {
    get: (target, name): unknown => {
      if (name === 'client') return client;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** The same connection, on which every script counts its steps. `ran` is called after each of them. */
export function countSteps(
  connection: RedisConnection,
  ran: () => void = () => undefined,
): {
  readonly counted: RedisConnection;
  readonly longest: Longest;
} {
  const { client } = connection;
  const counting = new Map(allScripts.map((script) => [script, withCount(script)]));
  let most = new Map<string, number>();
  const counted = withScripts(connection, async (script, keys, ...rest) => {
    await client.set(stepsKey, 0);
    const reply = await client.eval(counting.get(script) ?? '', keys, ...rest);
    const steps = Number(await client.get(stepsKey));
    most.set(script.name, Math.max(steps, most.get(script.name) ?? 0));
    ran();
    return reply;
  });
  return {
    counted,
    longest: {
      forget: () => {
        most = new Map();
      },
      found: () => {
        const [script, steps] = [...most].toSorted(([, a], [, b]) => b - a)[0] ?? ['', 0];
        return { script, steps };
      },
      all: () => Object.fromEntries(most),
    },
  };
}

/** What these answer after few steps is right, but not the same: waits are shorter, positions are lower bounds. */
const inexact = new Set(['take', 'positions', 'live', 'survey']);

/** The same connection, on which scripts end after so few steps, as soon as they may. */
export function withFewSteps(connection: RedisConnection, steps: number): RedisConnection {
  return withScripts(connection, ({ name, text }, keys, ...rest) => {
    if (inexact.has(name)) return connection.client.eval(text, keys, ...rest);
    const changed = text.replace(
      'local stepsLeft = constant.stepsAtOnce\n',
      `local stepsLeft = ${steps}\n`,
    );
    if (changed === text) throw new Error(`the script ${name} has no bound`);
    return connection.client.eval(changed, keys, ...rest);
  });
}
