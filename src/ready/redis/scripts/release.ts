import { requestUnit } from '../../../domain/token-bucket.js';
import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { outRecords } from './out-records.js';
import { packedStates } from './packed-states.js';
import { plain } from './plain.js';
import { sources } from './sources.js';
import { windows } from './windows.js';
import { queues } from './queues.js';
import { wakes } from './wakes.js';

/** More queues that have settings are released from by several scripts: each may open lanes. */
export const queuesAtOnce = 150;

const releasing = String.raw`
local gone, isGone = {}, {}
-- Queues that had no place left, those whose own tokens changed, and those with more than before.
local wereFull, haveChanged, haveRisen = {}, {}, {}
local risenLimits = {}

-- Of all that are out among them, the queues are found; false for the others. Nil: they are too many.
local function findQueues(records)
  local names, found = {}, {}
  for index, record in ipairs(records) do
    names[index] = isOut(record) and outQueue(record)
    found[#found + 1] = names[index] or nil
  end
  if findPlain(found) > ${queuesAtOnce} then return nil end
  return names
end

local function release(taskId, name, record)
  isGone[taskId] = true
  gone[#gone + 1] = taskId
  if plainStates[name] then return freePlain(name, isRunning(record)) end
  local queue = loadQueue(name)
  if placesIn(queue) <= 0 then wereFull[queue] = true end
  queue.slots = queue.slots - 1
  if isRunning(record) then queue.running = queue.running - 1 end
  queue.isChanged = true
end

local function settleLimit(queue, limit, bucket, reserved, used)
  local hasRisen = settle(bucket, reserved, used)
  if not limit.isShared then haveChanged[queue] = true end
  if not hasRisen then return end
  if limit.isShared then risenLimits[limit.name] = true else haveRisen[queue] = true end
end

local function openAndWake()
  local opened = {}
  for queue in pairs(wereFull) do opened[queue] = placesIn(queue) > 0 or nil end
  for queue in pairs(haveRisen) do opened[queue] = true end
  -- With fewer tokens nothing opens, but what waits for a slot may have become short.
  for queue in pairs(haveChanged) do openParkedLanes(queue) end
  for queue in pairs(opened) do
    openParkedLanes(queue)
    wakeQueue(queue)
  end
  for limit in pairs(risenLimits) do wakeSourcesOf(limit) end
end

local function finishRelease()
  callWithAll('HDEL', entriesKey, gone)
  callWithAll('ZREM', outKey, gone)
  openAndWake()
  saveSources()
  saveBuckets()
  savePlain()
  saveQueues()
  saveMeta()
  return wakes
end
`;

const refundBody = String.raw`
if not isOpen then return {} end

local function grantNumber(record)
  return tonumber(string.match(outGrant(record), '%d+$'))
end

-- A later take was judged by what this one left: only the last one gives its tokens back, and only to the
-- limits that it paid.
local function giveTokensBack(queue, record)
  if grantNumber(record) <= (queue.settings.limitsSince or 0) then return end
  local grant, cost = outGrant(record), parseCost(outCost(record))
  for _, limit in ipairs(queue.settings.limits) do
    local bucket = loadBucket(limit.bucket)
    if bucket and bucket.grant == grant then
      local reserved = bucket.unit == '${requestUnit}' and 1 or cost[bucket.unit] or 0
      settleLimit(queue, limit, bucket, reserved, 0)
    end
  end
end

-- Only under the version that it was taken under.
local function giveProbeBack(queue, record)
  local olderGrants = queue.settings.olderGrants
  if olderGrants and grantNumber(record) > olderGrants then
    queue.probesLeft = queue.probesLeft + 1
  end
end

-- Ids first, then their grants.
local size = (#ARGV - 1) / 2
local records = readRecords(ARGV, 2, 1 + size)
local names = findQueues(records)
if not names then return 'split' end
for index, name in ipairs(names) do
  local taskId, record, grant = ARGV[1 + index], records[index], ARGV[1 + size + index]
  if name and not isRunning(record) and outGrant(record) == grant and not isGone[taskId] then
    local queue = not plainStates[name] and loadQueue(name)
    if queue then giveTokensBack(queue, record) end
    release(taskId, name, record)
    if queue then giveProbeBack(queue, record) end
  end
end
return finishRelease()
`;

const finishBody = String.raw`
if not isOpen then return 'closed' end

-- Tokens come back together with the slot: of what holds none any more only the debt is booked.
local function settleUsage(name, reserved, usage, holdsSlot)
  if plainStates[name] then return end
  local queue = loadQueue(name)
  for _, limit in ipairs(queue.settings.limits) do
    local bucket = loadBucket(limit.bucket)
    local used = bucket and bucket.unit ~= '${requestUnit}' and usage[bucket.unit]
    local expected = bucket and reserved[bucket.unit] or 0
    if used and (holdsSlot or used > expected) then
      settleLimit(queue, limit, bucket, expected, used)
    end
  end
end

-- By its grant, or by how long ago it ended: what was told late may be of a taking before this one.
local function isOfThisTaking(record, ending)
  if sub(ending, 1, 1) == '=' then return sub(ending, 2) == outGrant(record) end
  return outSince(record) <= now - ending
end

-- Ids first, then a text for each: its grant or how long ago it ended and, if its usage is known, a line
-- of that.
local size = (#ARGV - 1) / 2
local records = readRecords(ARGV, 2, 1 + size)
local names = findQueues(records)
if not names then return 'split' end
for index, name in ipairs(names) do
  local taskId, record, text = ARGV[1 + index], records[index], ARGV[1 + size + index]
  local lineEnd = find(text, '\n', 1, true)
  local ending = lineEnd and sub(text, 1, lineEnd - 1) or text
  local holdsSlot = name and not isGone[taskId] and isOfThisTaking(record, ending)
  if lineEnd then
    local told = cjson.decode(sub(text, lineEnd + 1))
    -- What was sent before and holds no slot was settled when it gave the slot back.
    if holdsSlot or not told.isResent then
      settleUsage(told.queue, told.reserved, told.usage, holdsSlot)
    end
  end
  if holdsSlot then release(taskId, name, record) end
end
return finishRelease()
`;

const shared = [
  ...[base, queues, packedStates, ageing, windows, sources, entries, outRecords, plain],
  ...[buckets, wakes, releasing],
];

/** What Postgres refused: slot and probe come back, and tokens where that breaks no bound. */
export const refund = script('refund', ...shared, refundBody);

/** What no longer runs: the slot comes back, and the real usage is settled. */
export const finish = script('finish', ...shared, finishBody);
