-- What Postgres refused: slot and probe come back, and tokens where that breaks no bound.
-- include: base openings

-- Ids first, then their grants.
local size = (#ARGV - 1) / 2
local beforeIds, beforeGrants = 1, 1 + size

if not isOpen then return { size, {} } end

local function grantNumber(record)
  return tonumber(string.match(outGrant(record), '%d+$'))
end

-- A later take was judged by what this one left: only the last one gives its tokens back, and only to the
-- limits that it paid.
local function giveTokensBack(queue, record)
  if grantNumber(record) <= (queue.settings.limitsSince or 0) then return end
  local grant, cost = outGrant(record), parseCost(outCost(record))
  for _, limit in ipairs(limitsIn(queue.settings)) do
    local bucket = loadBucket(limit.bucket)
    if bucket and bucket.grant == grant then
      local reserved = bucket.unit == constant.requestUnit and 1 or cost[bucket.unit] or 0
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

local records = readRecords(ARGV, beforeIds + 1, beforeGrants)
for index, name in ipairs(findQueues(records)) do
  if not goesOn(index) then break end
  local taskId, record, grant = ARGV[beforeIds + index], records[index], ARGV[beforeGrants + index]
  if name and not isRunning(record) and outGrant(record) == grant and not isGone[taskId] then
    local queue = not plainStates[name] and loadQueue(name)
    if queue then giveTokensBack(queue, record) end
    release(taskId, name, record)
    if queue then giveProbeBack(queue, record) end
  end
end
return finishRelease()
