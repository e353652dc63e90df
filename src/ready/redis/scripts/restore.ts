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

local lanesLeft, wildcards = 500, {}

local function wipeAll(kind, key)
  call('UNLINK', prefix .. kind .. '0' .. key, prefix .. kind .. '1' .. key, prefix .. kind .. '2' .. key)
end

-- False: it has more lanes than one script may wipe.
local function wipeQueue(name)
  for _, lane in ipairs(call('SPOP', prefix .. 'lanes:' .. name, lanesLeft)) do
    wipeAll('w:', lane)
    wildcards[name .. '\n*' .. sub(lane, (find(lane, '\n', #name + 2, true)))] = true
    lanesLeft = lanesLeft - 1
  end
  if lanesLeft == 0 then return false end
  call('UNLINK', prefix .. 'lanes:' .. name, prefix .. 'parked-of:' .. name,
    prefix .. 'reopening-of:' .. name)
  return true
end

local function wipeSource(source)
  call('UNLINK', prefix .. 'index:' .. source, prefix .. 'parked:' .. source,
    prefix .. 'alarms:' .. source)
  for limit in string.gmatch(string.match(source, '^[^\n]*'), '[^\t]+') do
    call('DEL', prefix .. 'sources-of:' .. limit)
  end
end

local names = call('HRANDFIELD', prefix .. 'states', atOnce)
local wiped = {}
for _, name in ipairs(names) do
  if not wipeQueue(name) then break end
  wiped[#wiped + 1] = name
end
for key in pairs(wildcards) do wipeAll('heads:', key) end
callWithAll('HDEL', prefix .. 'states', wiped)
local sources = call('ZPOPMIN', prefix .. 'sources', atOnce)
for index = 1, #sources, 2 do wipeSource(sources[index]) end
local popped = call('ZPOPMIN', prefix .. 'changed', atOnce)
for index = 1, #popped, 2 do call('DEL', prefix .. 'b:' .. popped[index]) end
if #names + #sources + #popped > 0 then return 'more' end
call('UNLINK', entriesKey, outKey, prefix .. 'idle', prefix .. 'left', prefix .. 'settings',
  prefix .. 'windows', prefix .. 'tails', prefix .. 'members', prefix .. 'reopening',
  prefix .. 'reopening-again')
call('HDEL', metaKey, 'reopening', 'pruned')
if meta.wildcards then call('HSET', metaKey, 'wildcards', 'all') end
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
for _, kind in ipairs({ 'entries', 'states', 'settings', 'windows', 'tails', 'left', 'members' }) do
  call('HSET', prefix .. kind, '', '')
end
call('ZADD', outKey, '-inf', '')
call('ZADD', prefix .. 'changed', '-inf', '')
call('ZADD', prefix .. 'idle', '+inf', '')
call('HDEL', metaKey, 'lost')
call('HSET', metaKey, 'generation', generation, 'run', runOfServer(),
  'sources', generation .. '.' .. whole(nextNumber()) .. ':0')
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
