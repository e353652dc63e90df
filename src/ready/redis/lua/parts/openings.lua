-- include: plain out-list wakes

local gone, isGone = {}, {}
-- Queues that had no place left, those whose own tokens changed, and those with more than before.
local wereFull, haveChanged, haveRisen = {}, {}, {}
local risenLimits = {}

-- How many of the ids are looked at, from the first on: the rest is for the next script.
local last

-- Of more queues that have settings, the rest is left to the next script: each may open lanes.
local queuesAtOnce = 150

-- Of all that are out among them, the queues are found; false for the others.
local function findQueues(records)
  local names, found, isFound, configured = {}, {}, {}, {}
  for index, record in ipairs(records) do
    local name = isOut(record) and outQueue(record)
    names[index] = name
    if name and not isFound[name] then
      isFound[name] = true
      found[#found + 1] = name
    end
  end
  findPlain(found)
  last = #records
  for index, name in ipairs(names) do
    if name and isFound[name] and not plainStates[name] then
      isFound[name] = nil
      configured[#configured + 1] = name
      if #configured > queuesAtOnce then
        last = index - 1
        break
      end
    end
  end
  loadQueues(configured)
  return names
end

-- Whether to go on with it. The first one is always done.
local function goesOn(index)
  if index > 1 and stepsLeft <= 0 then last = math.min(last, index - 1) end
  return index <= last
end

local function release(taskId, name, record)
  isGone[taskId] = true
  gone[#gone + 1] = taskId
  stepsLeft = stepsLeft - 4
  if plainStates[name] then return freePlain(name, isRunning(record)) end
  local queue = loadQueue(name)
  if not queue.isChanged then stepsLeft = stepsLeft - price.queue end
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
  return { last, wakes }
end
