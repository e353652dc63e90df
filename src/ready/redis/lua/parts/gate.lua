-- include: ready-lanes entries buckets

-- What lets an entry go, and when: slots, probes, pause, tokens, and the entry that its queue is short
-- of.
local function costOf(entry)
  if not entry.cost then
    if not entry.costText then
      stepsLeft = stepsLeft - price.cost
      local waiting = parseWaiting(entry.taskId, call('HGET', entriesKey, entry.taskId)) or missPart('entries')
      entry.costText = waiting.costText
    end
    entry.cost = parseCost(entry.costText)
  end
  return entry.cost
end

local function costInBucket(entry, bucket)
  return bucket.unit == constant.requestUnit and 1 or costOf(entry)[bucket.unit] or 0
end

-- When the queue's own buckets, or those that it shares, hold what the entry costs.
local function tokensAt(entry, areShared)
  local at = now
  for _, limit in ipairs(limitsIn(entry.queue.settings)) do
    if limit.isShared == areShared then
      local bucket = loadBucket(limit.bucket)
      at = math.max(at, now + tokenWait(bucket, costInBucket(entry, bucket)))
    end
  end
  return at
end

local function shortEntryOf(queue)
  if queue.short == '' then return nil end
  if not queue.shortEntry or queue.shortEntry.taskId ~= queue.short then
    queue.shortEntry = parseWaiting(queue.short, call('HGET', entriesKey, queue.short)) or missPart('entries')
    queue.shortEntry.queue = queue
  end
  return queue.shortEntry
end

-- When the entry that its queue is short of lets this one pass: now, if it does not come first.
local function obstacleGoesAt(entry)
  local short = shortEntryOf(entry.queue)
  if not short or short.taskId == entry.taskId or isTakenBefore(entry, short) then return now end
  return tokensAt(short, false)
end

local function setShort(queue, taskId)
  if queue.short == taskId then return end
  queue.short = taskId
  queue.isChanged = true
  reopenParked(queue)
end

-- When its queue's own conditions let an entry go.
local function opensAt(entry)
  local queue, settings = entry.queue, entry.queue.settings
  if placesIn(queue) <= 0 then return huge end
  local at = math.max(now, settings.pausedUntil)
  if not queue.hasLimits then return at end
  if not knowsItsLimits(queue) then return huge end
  return math.max(at, tokensAt(entry, false), obstacleGoesAt(entry))
end

-- Of an entry whose turn it is: its queue is short of it, if it waits for tokens and for no other
-- entry. If it waits for another, it is to be looked at again when that one goes.
local function noteIfShort(entry)
  local obstacleAt = obstacleGoesAt(entry)
  -- The lane that the walk is at: a wildcard lane has entries of other lanes.
  local lane = entry.walked or entry.lane
  lane.lookAgainAt = nil
  if obstacleAt > now then
    lane.lookAgainAt = obstacleAt
  elseif tokensAt(entry, false) > now then
    setShort(entry.queue, entry.taskId)
  end
end

local function examine(entry)
  if entry.queue.hasLimits then noteIfShort(entry) end
  return opensAt(entry)
end
