-- Newer versions of limits and of the settings of queues. Limits first. Answers with the last number before, and with
-- how many of them it made.
-- include: base building wakes

-- A new bucket starts full, or with the tokens given; a changed one keeps its tokens.
local function levelOfBucket(bucket, shape)
  if shape.tokens then return math.min(shape.capacity, shape.tokens * shape.token) end
  if not bucket or bucket.unit ~= shape.unit then return shape.capacity end
  return math.min(shape.capacity, (bucket.level / bucket.token) * shape.token)
end

local function hasShape(bucket, shape)
  return bucket and bucket.unit == shape.unit and bucket.token == shape.token
    and bucket.gain == shape.gain and bucket.capacity == shape.capacity
end

local function putBucket(shape)
  local bucket = loadBucket(shape.bucket)
  local key = prefix .. 'b:' .. shape.bucket
  call('HSET', key, 'limit', shape.limit, 'version', shape.version or 0)
  if hasShape(bucket, shape) and not shape.tokens then return end
  local isKnown = bucket and bucket.unit == shape.unit
  buckets[shape.bucket] = {
    name = shape.bucket,
    key = key,
    unit = shape.unit,
    token = shape.token,
    gain = shape.gain,
    capacity = shape.capacity,
    level = levelOfBucket(bucket, shape),
    grant = isKnown and bucket.grant or '',
    use = isKnown and windowUse.changed(bucket, shape),
    isChanged = true,
  }
  call('HSET', key, 'unit', shape.unit, 'token', shape.token, 'gain', shape.gain,
    'capacity', shape.capacity)
end

local function dropBucket(name)
  call('DEL', prefix .. 'b:' .. name)
  call('ZREM', changedKey, name)
  buckets[name] = nil
end

-- Queues that use a limit which was not known gave nothing until now.
local function openUsersOf(limit)
  for _, source in ipairs(call('SMEMBERS', prefix .. 'sources-of:' .. limit)) do
    local keys = call('ZRANGEBYSCORE', prefix .. 'parked:' .. source, '+inf', '+inf')
    loadLanes(keys, 1)
    for _, key in ipairs(keys) do openLane(loadLane(key)) end
  end
end

-- Whether it is known, and whether this version is newer.
local function compareLimit(limit)
  local version = loadBucket(limit.bucket) and call('HGET', prefix .. 'b:' .. limit.bucket, 'version')
  return version ~= false, not version or limit.version > tonumber(version)
end

local function configureLimit(limit)
  local isKnown, isNewer = compareLimit(limit)
  if not isNewer then return end
  putBucket(limit)
  if not isKnown then openUsersOf(limit.name) end
  wakeSourcesOf(limit.name)
end

local token = ARGV[2]
local change = cjson.decode(ARGV[3])

if token ~= '' then
  if not isStillBuilding(token) then return 'lost' end
elseif not isOpen then
  return 'closed'
end

local function settingsOf(given)
  local settings = given.settings
  settings.version = given.version
  settings.limitCount = #settings.limits
  settings.maxConcurrency = settings.maxConcurrency or huge
  settings.lowToMedium = settings.lowToMedium or huge
  settings.lowToHigh = settings.lowToHigh or huge
  settings.mediumToHigh = settings.mediumToHigh or huge
  settings.pausedUntil = -huge
  if settings.isPaused then settings.pausedUntil = now + (settings.pausedFor or huge) end
  -- Grants up to this number were given under an older version.
  if settings.probes then settings.olderGrants = meta.counter end
  return settings
end

local function replaceBuckets(given, former)
  local isOwn = {}
  for _, shape in ipairs(given.buckets) do
    isOwn[shape.bucket] = true
    putBucket(shape)
  end
  for _, limit in ipairs(limitsIn(former)) do
    if not limit.isShared and not isOwn[limit.bucket] then dropBucket(limit.bucket) end
  end
end

local function usesSameLimits(settings, former)
  local isUsed = {}
  for _, limit in ipairs(limitsIn(former)) do isUsed[limit.bucket] = true end
  for _, limit in ipairs(settings.limits) do
    if not isUsed[limit.bucket] then return false end
  end
  return settings.limitCount == former.limitCount
end

-- Whether lanes stay in their source, at their level.
local function keepsPlaces(settings, former)
  return settings.class == former.class and settings.lowToMedium == former.lowToMedium
    and settings.lowToHigh == former.lowToHigh and settings.mediumToHigh == former.mediumToHigh
end

local function placeLane(key, queue, former)
  local lane = loadLane(key)
  if former.class ~= queue.settings.class then
    lane.source = former.class .. '\n' .. lane.group
    leaveSource(lane)
    lane.source = queue.settings.class .. '\n' .. lane.group
    registerSource(lane.source)
  end
  openLane(lane)
end

-- All that waits may have become open, more urgent, or another source's.
local function placeLanes(queue, former)
  if keepsPlaces(queue.settings, former) then return openParkedLanes(queue) end
  local lanesKey = prefix .. 'lanes:' .. queue.name
  local keys = call('SMEMBERS', lanesKey)
  for _, key in ipairs(keys) do lanes[key] = nil end
  loadLanes(keys, 1)
  local isWildcard = {}
  for _, key in ipairs(keys) do
    placeLane(key, queue, former)
    if meta.wildcards then isWildcard[wild.keyOf(loadLane(key))] = true end
  end
  for key in pairs(isWildcard) do
    lanes[key] = nil
    placeLane(key, queue, former)
  end
end

local function isNewerThan(former, given)
  return not former.version or given.version > former.version
end

-- What it costs to place lanes anew; so many for one thing are never placed by a script.
local maxPlaced = 300

local function placingCost(lanes, newLimits)
  if lanes > maxPlaced then return huge end
  return lanes * ((price.lane + price.movedLane) + newLimits * price.newSource)
end

local function costOfLimit(limit)
  if compareLimit(limit) then return price.newLimit end
  local key, count = prefix .. 'sources-of:' .. limit.name, 0
  if call('SCARD', key) > maxPlaced then return huge end
  for _, source in ipairs(call('SMEMBERS', key)) do
    local parkedKey = prefix .. 'parked:' .. source
    count = count + 1 + #call('ZRANGEBYSCORE', parkedKey, '+inf', '+inf', 'LIMIT', 0, maxPlaced)
    if count > maxPlaced then break end
  end
  return price.newLimit + placingCost(count, 0)
end

local function costOfQueue(given)
  local former = loadQueue(given.name).settings
  if not isNewerThan(former, given) then return 0 end
  local settings = settingsOf(given)
  local cost = price.newQueue + former.limitCount * 8 + settings.limitCount * price.newLimit
  if keepsPlaces(settings, former) then return cost end
  local newLimits = settings.class ~= former.class and 1 + settings.sharedCount or 0
  return cost + placingCost(call('SCARD', prefix .. 'lanes:' .. given.name), newLimits)
end

local function saveSettings(queue)
  local settings, limits = queue.settings, queue.settings.limits
  settings.packedLimits, settings.limits = cmsgpack.pack(limits), nil
  call('HSET', settingsKey, queue.name, cmsgpack.pack(settings))
  settings.limits = limits
end

local function configureQueue(given)
  local queue = loadQueue(given.name)
  local former = queue.settings
  if not isNewerThan(former, given) then return end
  queue.settings = settingsOf(given)
  -- Grants up to this number paid other limits than these.
  queue.settings.limitsSince = usesSameLimits(queue.settings, former) and former.limitsSince or meta.counter
  queue.probesLeft = queue.settings.probes or huge
  queue.hasLimits = queue.settings.limitCount > 0
  queue.isChanged = true
  saveSettings(queue)
  replaceBuckets(given, former)
  placeLanes(queue, former)
  wakeQueue(queue)
end

-- A change that costs more is not made by one script.
local mostPlacing = constant.stepsAtOnce + 1000

-- How many were made, limits first: the rest is for the next script. Each is made as a whole or not at all.
local done, isTooMuch = 0, false

local function makeSome(changes, costOf, make)
  for _, given in ipairs(changes) do
    local cost = costOf(given)
    isTooMuch = isTooMuch or isOpen and done == 0 and cost > mostPlacing
    if isTooMuch or done > 0 and cost > stepsLeft then return false end
    stepsLeft = stepsLeft - cost
    make(given)
    done = done + 1
  end
  return true
end

if makeSome(change.limits, costOfLimit, configureLimit) then
  makeSome(change.queues, costOfQueue, configureQueue)
end
if isTooMuch then
  -- The contents are built anew, with the change.
  call('HDEL', metaKey, 'generation', 'run')
  return 'closed'
end
saveSources()
saveBuckets()
saveQueues()
saveMeta()
return { meta.generation or '', whole(meta.counter), wakes, done }
