-- include: ready-lanes

-- In a window those that fulfil such a condition come first: halving finds how many they are. What was looked at
-- is kept: who asks for many places of a window looks at the same entries.
local maxLanesSeen = 250
-- Of all queues that a script looks at.
local lanesLeft = 500

local function readEntry(window, index)
  if not window.isLong then return entryAfter(window, index * packedSize) end
  stepsLeft = stepsLeft - price.probe
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

-- Of the first so many. Mostly all of those do, or nearly. A lower bound once the script has done enough.
local function countFirst(lane, rank, most, condition)
  local window = windowOf(lane, rank)
  if not window.entries then window.entries, window.size = {}, sizeOf(window) end
  local low, high = 0, math.min(window.size, most)
  if stepsLeft <= 0 then return 0 end
  if high > 0 and condition(entryAt(window, high - 1)) then return high end
  while low < high and stepsLeft > 0 do
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
  stepsLeft = stepsLeft - #found * price.lane
  loadLanes(found, 1)
  for index, key in ipairs(found) do found[index] = loadLane(key) end
  return found
end
