-- What every script begins with. All keys are made from the prefix, which is `KEYS[1]` and holds the
-- hash tag: whatever a script touches is in one slot. `KEYS[2]` is there for a cluster: see `ScriptRunner`.
--
-- Numbers that are handed to Redis are printed so that they come back unchanged; those that are
-- joined to a text lose digits past the 14th, so they are formatted first.
local call = redis.call
local huge = math.huge
-- How much more it may begin: see step-bound.ts.
local stepsLeft = constant.stepsAtOnce
local sub, find, byte = string.sub, string.find, string.byte
local prefix = KEYS[1]
local metaKey = prefix .. 'meta'
local buildingKey = prefix .. 'building'
local entriesKey = prefix .. 'entries'
local outKey = prefix .. 'out'

local found = call('HMGET', metaKey, 'generation', 'run', 'counter', 'sources', 'ahead', 'last',
  'wildcards', 'reopening')
local meta = {
  generation = found[1],
  run = found[2],
  counter = tonumber(found[3] or 0),
  sources = found[4] or '',
  ahead = tonumber(found[5] or 0),
  last = tonumber(found[6] or 0),
  -- False: wildcard lanes are not kept; 'all', or a cursor: up to there they were made.
  wildcards = found[7],
  -- Whether some queue has parked lanes that are to be reopened.
  isReopening = found[8] ~= false,
}
local isOpen = meta.generation ~= false

-- A part of the contents is gone, deleted or evicted: the rest is closed, and filled anew.
local function missPart(name)
  call('HDEL', metaKey, 'generation', 'run')
  call('HSET', metaKey, 'lost', name)
  error('PARTLOST ' .. name)
end

-- Each of these has a mark, field or member '', from the opening on: it is never deleted for being empty.
if isOpen and call('EXISTS', entriesKey, outKey, prefix .. 'states', prefix .. 'settings', prefix .. 'idle',
  prefix .. 'changed', prefix .. 'windows', prefix .. 'tails', prefix .. 'left',
  prefix .. 'members') < 10 then
  missPart('one of those that are always there')
end

local function runOfServer()
  return string.match(call('INFO', 'server'), 'run_id:(%x+)')
end

-- Contents that another run of the server made are older than what that run was told last.
local function isOfThisRun()
  return isOpen and meta.run == runOfServer()
end

-- Whole milliseconds that never go back: when the clock is set back, it goes on from where it was.
local function readClock(given)
  local ms
  if given == '' then
    local time = call('TIME')
    ms = time[1] * 1000 + math.floor(time[2] / 1000)
  else
    ms = math.floor(tonumber(given))
  end
  if ms + meta.ahead < meta.last then meta.ahead = meta.last - ms end
  meta.last = ms + meta.ahead
  return meta.last
end

local now = readClock(ARGV[1])

-- One counter for turns, grants and the order of changes.
local function nextNumber()
  meta.counter = meta.counter + 1
  return meta.counter
end

local function saveMeta()
  call('HSET', metaKey, 'counter', meta.counter, 'ahead', meta.ahead, 'last', meta.last)
end

-- Lua passes a few thousand arguments at most. A chunk must hold whole pairs.
local chunk = 1000
local function callWithAll(command, key, arguments)
  for first = 1, #arguments, chunk do
    call(command, key, unpack(arguments, first, math.min(first + chunk - 1, #arguments)))
  end
end

-- Of all fields of a hash that are in a list, or in a part of it, in their order; false for those
-- that it does not have.
local function readFields(key, fields, first, last)
  first, last = first or 1, last or #fields
  if first > last then return {} end
  if last - first < chunk then return call('HMGET', key, unpack(fields, first, last)) end
  local values = {}
  for from = first, last, chunk do
    local found = call('HMGET', key, unpack(fields, from, math.min(from + chunk - 1, last)))
    for index = 1, #found do values[from - first + index] = found[index] end
  end
  return values
end

local function append(list, ...)
  local size = #list
  for index = 1, select('#', ...) do list[size + index] = (select(index, ...)) end
end

local function whole(number)
  return string.format('%.0f', number)
end

-- As a script hands numbers to Redis, they are printed as those with a fraction: slowly.
local function digits(number)
  return string.format('%d', number)
end

local function argumentsFrom(first, step)
  local values = {}
  for at = first, #ARGV, step do values[#values + 1] = ARGV[at] end
  return values
end

-- The order of a line.
local function isBefore(at, seq, otherAt, otherSeq)
  if at ~= otherAt then return at < otherAt end
  return seq < otherSeq
end
