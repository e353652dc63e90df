-- Compares what is said of queues in several places, some queues at a time. Without it, lanes that are in no
-- index are never found by a take. Whatever limits depend on is looked at by every script that needs it.
-- include: base routing-groups buckets

-- The cursor of a scan, and how many of its stretch were looked at by the script before.
local cursor, seen = string.match(ARGV[2], '^(%d+):?(%d*)$')
local count = ARGV[3]
-- Of each queue. One that lost its set of lanes has fewer from then on, and all of them are looked at.
local lanesAtOnce = 20
-- Of all of them together.
local lanesLeft = 400
-- Steps for a lane with its wildcard lane.
local auditedLane = 60

local function isPlaced(lane)
  return call('ZSCORE', prefix .. 'index:' .. lane.source, lane.key)
    or call('ZSCORE', prefix .. 'parked:' .. lane.source, lane.key)
end

-- Without it, workers for every type never find the lane.
local function auditWildcard(lane)
  local wildcard = loadLane(wild.keyOf(lane))
  local members = call('HGET', wild.membersKey, wildcard.key)
  if not members then missPart('members') end
  -- One that is in the index needs an alarm where age can raise its level; one that is only parked does not.
  local score = call('ZSCORE', prefix .. 'index:' .. wildcard.source, wildcard.key)
  if not isPlaced(wildcard) then missPart('index: or parked: ' .. wildcard.source) end
  local settings = lane.queue.settings
  if score and tonumber(score) >= levelSpan and settings.lowToHigh < huge and settings.mediumToHigh < huge
    and not call('ZSCORE', prefix .. 'alarms:' .. wildcard.source, wildcard.key) then
    missPart('alarms: ' .. wildcard.source)
  end
  if members ~= wild.wideMark then return end
  for rank = 0, 2 do
    local key = wild.headsKey(wildcard, rank)
    if headOfWindow(lane, rank) and not call('ZSCORE', key, lane.key) then missPart(key) end
  end
end

local function auditLane(lane)
  local head = headOf(lane)
  stepsLeft = stepsLeft - auditedLane - lane.queue.settings.sharedCount * price.newSource
  if not head then return end
  if not isPlaced(lane) then missPart('index: or parked: ' .. lane.source) end
  if not call('ZSCORE', sourcesKey, lane.source) then missPart('sources') end
  for limit in limitsOf(lane.source) do
    local key = prefix .. 'sources-of:' .. limit
    if call('SISMEMBER', key, lane.source) == 0 then missPart(key) end
  end
  if promotesAt(lane, levelOf(head)) < huge
    and not call('ZSCORE', prefix .. 'alarms:' .. lane.source, lane.key) then
    missPart('alarms: ' .. lane.source)
  end
  if meta.wildcards == 'all' then auditWildcard(lane) end
end

local function parkedLanes(name)
  local later = meta.isReopening and call('SCARD', prefix .. 'reopening-of:' .. name) or 0
  return later + call('SCARD', prefix .. 'parked-of:' .. name)
end

local function auditQueue(name)
  local queue, lanesKey = loadQueue(name), prefix .. 'lanes:' .. name
  if parkedLanes(name) ~= queue.parked then missPart('parked-of: ' .. name) end
  for _, limit in ipairs(limitsIn(queue.settings)) do loadBucket(limit.bucket) end
  local waiting, size, held = waitingIn(queue), call('SCARD', lanesKey), 0
  local seen = math.max(1, math.min(lanesAtOnce, lanesLeft))
  local keys = call('SRANDMEMBER', lanesKey, seen)
  lanesLeft = lanesLeft - #keys
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do
    local lane = loadLane(key)
    auditLane(lane)
    for rank = 0, 2 do
      if lane[rank] then held = held + sizeOf(lane[rank]) end
    end
  end
  if size <= seen and held ~= waiting then missPart(lanesKey) end
end

if not isOpen then return '0' end
local found = call('HSCAN', statesKey, cursor, 'COUNT', count)
for index = 1 + 2 * (tonumber(seen) or 0), #found[2], 2 do
  if stepsLeft <= 0 then return cursor .. ':' .. digits((index - 1) / 2) end
  stepsLeft = stepsLeft - price.queue
  if found[2][index] ~= '' then auditQueue(found[2][index]) end
end
return found[1]
