-- What waits and is not to be taken any more. Answers how many of the ids it did, from the first on.
-- include: base entries wakes

local ids = argumentsFrom(2, 1)

if not isOpen then return { #ids, {} } end

local gone, isGone = {}, {}
opensSooner = false

-- Answers whether it was the first.
local function removeFromWindow(window, member)
  touch(window)
  if window.isLong then
    local isFirst = call('ZRANK', window.key, member) == 0
    call('ZREM', window.key, member)
    window.hasRemoved = true
    return isFirst
  end
  local text = window.text
  local at = find(text, member, 1, true)
  window.text = sub(text, 1, at - 1) .. sub(text, at + packedSize)
  return at == 1
end

local function remove(entry)
  local lane = loadLane(entry.laneKey)
  local queue = lane.queue
  if removeFromWindow(windowOf(lane, entry.rank), entry.member) then lane.hasNewHead = true end
  queue[entry.rank] = queue[entry.rank] - 1
  queue.isChanged = true
  if queue.short == entry.taskId then
    stepsLeft = stepsLeft - price.queue
    queue.short = ''
    queue.lostShort = true
    -- They are needed to wake somebody.
    knowsItsLimits(queue)
  end
  isGone[entry.taskId] = true
  gone[#gone + 1] = entry.taskId
end

local found, keys = {}, {}
for index, record in ipairs(readRecords(ids)) do
  local entry = parseWaiting(ids[index], record)
  if entry then
    entry.index = index
    found[#found + 1] = entry
    keys[#keys + 1] = entry.laneKey
  end
end
loadLanes(keys, 1)
-- How many ids were looked at, from the first on: the rest is for the next script.
local last = #ids
for index, entry in ipairs(found) do
  if index > 1 and stepsLeft <= 0 then
    last = entry.index - 1
    break
  end
  stepsLeft = stepsLeft - (price.lane + price.movedLane)
  if not isGone[entry.taskId] then remove(entry) end
end
for _, lane in pairs(lanes) do
  if lane.hasNewHead then openLane(lane) end
end
for _, queue in pairs(queues) do
  if queue.lostShort then
    openParkedLanes(queue)
    wakeQueue(queue)
  end
end
callWithAll('HDEL', entriesKey, gone)
saveWindows()
saveSources()
saveQueues()
saveMeta()
return { last, wakes }
