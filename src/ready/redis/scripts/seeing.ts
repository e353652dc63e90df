import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { outRecords } from './out-records.js';
import { windows } from './windows.js';
import { queues } from './queues.js';

const missingBody = String.raw`
local missing = {}
local ids = argumentsFrom(2, 1)
for index, record in ipairs(readRecords(ids)) do
  if not record then missing[#missing + 1] = ids[index] end
end
return missing
`;

const listOutBody = String.raw`
local after, limit = ARGV[2], tonumber(ARGV[3])

local found = call('ZRANGEBYSCORE', outKey, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, limit + 1)
local isLast = #found / 2 <= limit
local ids = {}
for index = 1, math.min(#found / 2, limit) do ids[index] = found[2 * index - 1] end
local listed = {}
for index, record in ipairs(readRecords(ids)) do
  local grant, queue, forMs = outGrant(record), outQueue(record), now - outSince(record)
  append(listed, ids[index], grant, queue, isRunning(record) and 1 or 0, forMs)
end
return { isLast and '' or found[2 * limit], listed }
`;

/** Told by one script. */
export const levelsAtOnce = 500;

const levelsBody = String.raw`
local generation, after = ARGV[2], ARGV[3]

if not isOpen then return { '', '0', {} } end
if generation ~= meta.generation then after = '-inf' end
local found = call('ZRANGEBYSCORE', changedKey, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, ${levelsAtOnce})
local levels = {}
for index = 1, #found, 2 do
  local bucket = loadBucket(found[index])
  append(levels, found[index], string.format('%.17g', bucket.level / bucket.token))
end
local isLast = #found < 2 * ${levelsAtOnce}
return { meta.generation, isLast and whole(meta.counter) or found[#found], levels }
`;

/**
 * In a window those that fulfil such a condition come first: halving finds how many they are. What was looked at
 * is kept: who asks for many places of a window looks at the same entries.
 */
const counting = String.raw`
local maxLanesSeen = 250
-- Of all queues that a script looks at.
local lanesLeft = 500

local function readEntry(window, index)
  if not window.isLong then return entryAfter(window, index * packedSize) end
  local found = call('ZRANGE', window.key, index, index)
  return entryOfMember(window.lane, window.rank, found[1])
end

local function entryAt(window, index)
  local entry = window.entries[index]
  if not entry then
    entry = readEntry(window, index)
    window.entries[index] = entry
  end
  return entry
end

-- Of the first so many. Mostly all of those do, or nearly.
local function countFirst(lane, rank, most, condition)
  local window = windowOf(lane, rank)
  if not window.entries then window.entries, window.size = {}, sizeOf(window) end
  local low, high = 0, math.min(window.size, most)
  if high > 0 and condition(entryAt(window, high - 1)) then return high end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if condition(entryAt(window, middle)) then low = middle + 1 else high = middle end
  end
  return low
end

-- All of them, or as many as a script may look at.
local function lanesOf(queue)
  local key = prefix .. 'lanes:' .. queue.name
  local most = math.min(maxLanesSeen, lanesLeft)
  if most == 0 then return {} end
  local isMany = call('SCARD', key) > most
  local found = isMany and call('SRANDMEMBER', key, most) or call('SMEMBERS', key)
  lanesLeft = lanesLeft - #found
  loadLanes(found, 1)
  for index, key in ipairs(found) do found[index] = loadLane(key) end
  return found
end
`;

const positionsBody = String.raw`
local limit = tonumber(ARGV[2])
local ids = argumentsFrom(3, 1)
local lanesByQueue = {}
-- For all of them together: what comes after that are lower bounds.
local looksLeft = 5000

local function countBefore(waiting)
  local queue = loadLane(waiting.laneKey).queue
  waiting.queue = queue
  local lanes = lanesByQueue[queue]
  if not lanes then
    lanes = lanesOf(queue)
    lanesByQueue[queue] = lanes
  end
  local function isBeforeIt(other) return isTakenBefore(other, waiting) end
  local count = 0
  for _, lane in ipairs(lanes) do
    if looksLeft <= 0 then break end
    for rank = 0, 2 do
      if queue[rank] > 0 then
        looksLeft = looksLeft - 1
        count = count + countFirst(lane, rank, limit - count, isBeforeIt)
      end
    end
  end
  -- Nothing of a lower priority becomes more urgent than what is above it already.
  local above = 0
  for rank = 0, levelOf(waiting) - 1 do above = above + queue[rank] end
  return math.min(limit, math.max(count, above))
end

local positions = {}
for index, record in ipairs(readRecords(ids)) do
  local waiting = parseWaiting(ids[index], record)
  positions[index] = waiting and digits(countBefore(waiting)) or ''
end
return positions
`;

const liveBody = String.raw`
local queue = loadQueue(ARGV[2])

-- How many of a rank have become at least as urgent as a level.
local function countAged(lane, rank, level)
  local eligibleBy = now - ageFor(queue.settings, rank, level)
  return countFirst(lane, rank, huge, function(entry) return entry.eligibleAt <= eligibleBy end)
end

local mediumToHigh, lowToHigh, lowToMedium, oldest = 0, 0, 0, huge
for _, lane in ipairs(lanesOf(queue)) do
  mediumToHigh = mediumToHigh + countAged(lane, 1, 0)
  lowToHigh = lowToHigh + countAged(lane, 2, 0)
  lowToMedium = lowToMedium + countAged(lane, 2, 1)
  for rank = 0, 2 do
    local head = headOfWindow(lane, rank)
    if head then oldest = math.min(oldest, head.eligibleAt) end
  end
end
-- Whoever is old enough for high was old enough for medium, and is in both counts.
lowToMedium = lowToMedium - lowToHigh

local levels = {}
for _, limit in ipairs(queue.settings.limits) do
  local bucket = loadBucket(limit.bucket)
  if bucket then
    local tokens = string.format('%.17g', bucket.level / bucket.token)
    local used, counted = windowUse.read(bucket)
    append(levels, bucket.name, tokens, call('HGET', bucket.key, 'limit'),
      string.format('%.17g', used), whole(counted))
  end
end
return {
  { queue[0], queue[1], queue[2] },
  {
    queue[0] + mediumToHigh + lowToHigh,
    queue[1] - mediumToHigh + lowToMedium,
    queue[2] - lowToHigh - lowToMedium,
  },
  queue.running,
  oldest < huge and now - oldest or '',
  levels,
}
`;

/** Which ids have no record. */
export const missing = script('missing', base, entries, missingBody);

/** What is taken or runs, in the order of taking. */
export const listOut = script('list-out', base, entries, outRecords, listOutBody);

/** Levels of the buckets that changed after a number of the counter. */
export const levels = script('levels', base, buckets, levelsBody);

/** Of each task how many of its queue are taken before it. */
export const positions = script(
  'positions',
  ...[base, queues, ageing, windows, entries, counting, positionsBody],
);

/** What is to be seen of a queue. */
export const live = script('live', ...[base, queues, ageing, windows, buckets, counting, liveBody]);
