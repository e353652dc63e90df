import { script } from '../script.js';
import { base } from './base.js';
import { building, buildingMs } from './building.js';
import { entries } from './entries.js';
import { queues } from './queues.js';

const beginBody = String.raw`
local token = ARGV[2]
local generation = ARGV[3]

-- Contents of another generation are of no use: Postgres refuses every claim of them.
if meta.generation == generation and isOfThisRun() then return 'open' end
local holder = call('GET', buildingKey)
if holder and holder ~= token then return 'busy' end
-- With a part missing, what is left of the rest is not found from key to key.
local isWhole = found[3] and call('HEXISTS', metaKey, 'lost') == 0
call('SET', buildingKey, token, 'PX', ${buildingMs})
call('HDEL', metaKey, 'generation', 'run')
call('HSET', metaKey, 'begun', now)
saveMeta()
return isWhole and 'yours' or 'in parts'
`;

const renewBody = String.raw`
return isStillBuilding(ARGV[2]) and 1 or 0
`;

const wipeBody = String.raw`
local token = ARGV[2]
local atOnce = 200

if not isStillBuilding(token) then return 'lost' end

local function wipeQueue(name)
  for _, lane in ipairs(call('SMEMBERS', prefix .. 'lanes:' .. name)) do
    call('UNLINK', prefix .. 'w:0' .. lane, prefix .. 'w:1' .. lane, prefix .. 'w:2' .. lane)
  end
  call('DEL', prefix .. 'lanes:' .. name, prefix .. 'parked-of:' .. name)
end

local function wipeSource(source)
  for _, kind in ipairs({ 'index:', 'parked:', 'alarms:' }) do
    call('UNLINK', prefix .. kind .. source)
  end
  for limit in string.gmatch(string.match(source, '^[^\n]*'), '[^\t]+') do
    call('DEL', prefix .. 'sources-of:' .. limit)
  end
end

local names = call('HRANDFIELD', prefix .. 'states', atOnce)
for _, name in ipairs(names) do wipeQueue(name) end
callWithAll('HDEL', prefix .. 'states', names)
local sources = call('SPOP', prefix .. 'sources', atOnce)
for _, source in ipairs(sources) do wipeSource(source) end
local popped = call('ZPOPMIN', prefix .. 'changed', atOnce)
for index = 1, #popped, 2 do call('DEL', prefix .. 'b:' .. popped[index]) end
if #names + #sources + #popped > 0 then return 'more' end
call('UNLINK', entriesKey, outKey, prefix .. 'idle', prefix .. 'left', prefix .. 'settings',
  prefix .. 'windows', prefix .. 'tails')
return 'done'
`;

const resumeBody = String.raw`
local token = ARGV[2]

if not isStillBuilding(token) then return 'lost' end
-- What runs was read after this: an end that names no grant and was said before it is of an earlier attempt.
local since = tonumber(call('HGET', metaKey, 'begun'))
loadQueues(argumentsFrom(4, 3))
for at = 3, #ARGV, 3 do
  local taskId, name, grant = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if call('HSETNX', entriesKey, taskId, outRecord('R', since, name, grant, '')) == 1 then
    call('ZADD', outKey, nextNumber(), taskId)
    local queue = loadQueue(name)
    queue.slots, queue.running, queue.isChanged = queue.slots + 1, queue.running + 1, true
  end
end
saveQueues()
saveMeta()
return 'resumed'
`;

const openBody = String.raw`
local token = ARGV[2]
local generation = ARGV[3]

if not isStillBuilding(token) then return 'lost' end
for _, kind in ipairs({ 'entries', 'states', 'settings', 'windows', 'tails', 'left' }) do
  call('HSET', prefix .. kind, '', '')
end
call('ZADD', outKey, '-inf', '')
call('ZADD', prefix .. 'changed', '-inf', '')
call('ZADD', prefix .. 'idle', '+inf', '')
call('HDEL', metaKey, 'lost')
call('HSET', metaKey, 'generation', generation, 'run', runOfServer(),
  'sources', generation .. '.' .. whole(nextNumber()))
call('DEL', buildingKey)
saveMeta()
return 'open'
`;

const discardBody = String.raw`
local token = ARGV[2]

if not isStillBuilding(token) then return 'lost' end
for at = 3, #ARGV do
  if ARGV[at] ~= metaKey and ARGV[at] ~= buildingKey then call('UNLINK', ARGV[at]) end
end
return 'discarded'
`;

/**
 * Closes the queue for a restore, unless it has this generation or another process is at it. In parts: older
 * contents are not whole, and are to be discarded by the names of their keys.
 */
export const begin = script('begin', base, beginBody);

/** Keeps the place of the process that restores. */
export const renew = script('renew', base, building, renewBody);

/** Deletes what is left of older contents, some of it at a time. */
export const wipe = script('wipe', base, building, wipeBody);

/** Deletes older contents by the names of their keys. */
export const discard = script('discard', base, building, discardBody);

/** Brings back what runs. */
export const resume = script('resume', base, queues, entries, building, resumeBody);

/** The last step: from now on there are takes and offers. */
export const open = script('open', base, building, openBody);
