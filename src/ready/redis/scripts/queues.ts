import { priorities } from '../../../domain/priority.js';
import { defaultQueueSettings } from '../../../domain/queue-settings.js';
import { thresholdsOf } from '../packed-settings.js';

const { lowToMediumMs, lowToHighMs, mediumToHighMs } = thresholdsOf(defaultQueueSettings.ageing);

/** Idle queues past this many are forgotten, the older half of them at once. */
const maxIdle = 10_000;

/**
 * Queues: settings, turn, slots and counts. Loaded once in a script, written back at its end.
 *
 * `queues` has the names of all, `idle` those that hold nothing and would be made again just as they
 * are, but for their turn and version, oldest first. How many probes are left is read and written only
 * of queues that have a number of them.
 */
export const queues = String.raw`
local defaultSettings = {
  isDefault = true,
  class = '',
  limits = {},
  maxReady = ${defaultQueueSettings.maxReady},
  maxConcurrency = huge,
  pausedUntil = -huge,
  lowToMedium = ${lowToMediumMs},
  lowToHigh = ${lowToHighMs},
  mediumToHigh = ${mediumToHighMs},
}
local queuesKey = prefix .. 'queues'
local idleKey = prefix .. 'idle'
local queues = {}

local function waitingIn(queue)
  return queue[0] + queue[1] + queue[2]
end

local function isIdle(queue)
  return queue.settings.isDefault and queue.slots == 0 and waitingIn(queue) == 0
end

-- [0], [1] and [2] are its waiting entries by rank.
local function loadQueue(name)
  local queue = queues[name]
  if queue then return queue end
  local key = prefix .. 'q:' .. name
  local field = call('HMGET', key, 'settings', 'turn', 'slots', 'running', 'parked', 'short',
    '${priorities.join("', '")}')
  queue = {
    name = name,
    key = key,
    isKnown = field[2] ~= false,
    settings = field[1] and cmsgpack.unpack(field[1]) or defaultSettings,
    turn = tonumber(field[2] or 0),
    slots = tonumber(field[3] or 0),
    running = tonumber(field[4] or 0),
    parked = tonumber(field[5] or 0),
    short = field[6] or '',
    [0] = tonumber(field[7] or 0),
    [1] = tonumber(field[8] or 0),
    [2] = tonumber(field[9] or 0),
  }
  queue.probesLeft = queue.settings.probes and tonumber(call('HGET', key, 'probes')) or huge
  queue.hasLimits = #queue.settings.limits > 0
  queue.wasIdle = queue.isKnown and isIdle(queue)
  queues[name] = queue
  return queue
end

-- How many more may be taken, as far as slots and probes go.
local function placesIn(queue)
  local free = queue.settings.maxConcurrency - queue.slots
  return queue.probesLeft < free and queue.probesLeft or free
end

local function forgetOldIdle()
  local excess = call('ZCARD', idleKey) - ${maxIdle}
  if excess <= 0 then return end
  local popped = call('ZPOPMIN', idleKey, excess + ${maxIdle / 2})
  local names = {}
  for index = 1, #popped, 2 do
    names[#names + 1] = popped[index]
    call('DEL', prefix .. 'q:' .. popped[index])
  end
  callWithAll('SREM', queuesKey, names)
end

local function saveQueue(queue)
  call('HSET', queue.key, 'turn', queue.turn, 'slots', queue.slots, 'running', queue.running,
    'parked', queue.parked, 'short', queue.short,
    '${priorities[0]}', queue[0], '${priorities[1]}', queue[1], '${priorities[2]}', queue[2])
  if queue.settings.probes then call('HSET', queue.key, 'probes', queue.probesLeft) end
  if not queue.isKnown then call('SADD', queuesKey, queue.name) end
  if isIdle(queue) then
    call('ZADD', idleKey, nextNumber(), queue.name)
    return true
  end
  if queue.wasIdle then call('ZREM', idleKey, queue.name) end
  return false
end

local function saveQueues()
  local someIdle = false
  for _, queue in pairs(queues) do
    if queue.isChanged and saveQueue(queue) then someIdle = true end
  end
  if someIdle then forgetOldIdle() end
end
`;
