import { requestUnit } from '../../../domain/token-bucket.js';
import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { plain } from './plain.js';
import { sources } from './sources.js';
import { windows } from './windows.js';
import { queues } from './queues.js';
import { wakes } from './wakes.js';

const releasing = String.raw`
local gone, isGone = {}, {}
-- Queues that had no place left, those whose own tokens changed, and those with more than before.
local wereFull, haveChanged, haveRisen = {}, {}, {}
local risenLimits = {}

-- False: it is neither taken nor runs. All queues of those that are are found.
local function parseOuts(records)
  local outs, names = {}, {}
  for index, record in ipairs(records) do
    local out = parseOut(record)
    outs[index] = out or false
    if out then names[#names + 1] = out.queueName end
  end
  findPlain(names)
  return outs
end

local function release(taskId, out)
  isGone[taskId] = true
  gone[#gone + 1] = taskId
  if plainStates[out.queueName] then return freePlain(out.queueName, out.isConfirmed) end
  local queue = loadQueue(out.queueName)
  if placesIn(queue) <= 0 then wereFull[queue] = true end
  queue.slots = queue.slots - 1
  if out.isConfirmed then queue.running = queue.running - 1 end
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

-- A later take was judged by what this one left: only the last one gives its tokens back.
local function giveTokensBack(out)
  if plainStates[out.queueName] then return end
  local queue = loadQueue(out.queueName)
  local cost = parseCost(out.costText)
  for _, limit in ipairs(queue.settings.limits) do
    local bucket = loadBucket(limit.bucket)
    if bucket and bucket.grant == out.grant then
      local reserved = bucket.unit == '${requestUnit}' and 1 or cost[bucket.unit] or 0
      settleLimit(queue, limit, bucket, reserved, 0)
    end
  end
end

-- Only under the version that it was taken under.
local function giveProbeBack(out)
  if plainStates[out.queueName] then return end
  local queue = loadQueue(out.queueName)
  local olderGrants = queue.settings.olderGrants
  if olderGrants and tonumber(string.match(out.grant, '%d+$')) > olderGrants then
    queue.probesLeft = queue.probesLeft + 1
  end
end

for index, out in ipairs(parseOuts(readRecords(argumentsFrom(2, 2)))) do
  local taskId, grant = ARGV[2 * index], ARGV[2 * index + 1]
  if out and not out.isConfirmed and out.grant == grant and not isGone[taskId] then
    giveTokensBack(out)
    release(taskId, out)
    giveProbeBack(out)
  end
end
return finishRelease()
`;

const finishBody = String.raw`
local firstFinished, arguments = 2, 7

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

-- Without a grant: what was told late may be of a taking before this one.
local function isOfThisTaking(out, grant, agoMs)
  if grant ~= '' then return grant == '=' .. out.grant end
  return out.since <= now - agoMs
end

for index, out in ipairs(parseOuts(readRecords(argumentsFrom(firstFinished, arguments)))) do
  local at = firstFinished + (index - 1) * arguments
  local taskId, grant, name = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local reserved, usage = ARGV[at + 3], ARGV[at + 4]
  local agoMs, isResent = tonumber(ARGV[at + 5]), ARGV[at + 6] == '1'
  local holdsSlot = out and not isGone[taskId] and isOfThisTaking(out, grant, agoMs)
  -- What was sent before and holds no slot was settled when it gave the slot back.
  if usage ~= '' and (holdsSlot or not isResent) then
    settleUsage(name, parseCost(reserved), parseCost(usage), holdsSlot)
  end
  if holdsSlot then release(taskId, out) end
end
return finishRelease()
`;

const shared = [base, queues, ageing, windows, sources, entries, plain, buckets, wakes, releasing];

/** What Postgres refused: slot and probe come back, and tokens where that breaks no bound. */
export const refund = script('refund', ...shared, refundBody);

/** What no longer runs: the slot comes back, and the real usage is settled. */
export const finish = script('finish', ...shared, finishBody);
