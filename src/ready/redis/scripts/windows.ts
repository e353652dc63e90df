/**
 * Lanes and their windows. `w0:`, `w1:` and `w2:` lane are the windows of each rank, scored by when an
 * entry became eligible; of equals the member decides, which begins with the insert order. So the
 * first is the oldest and, whatever the ageing, the most urgent of its window: three heads tell all
 * about a lane.
 */
export const windows = String.raw`
local lanes = {}

local function loadLane(key)
  local lane = lanes[key]
  if lane then return lane end
  local name, group = string.match(key, '^([^\n]*)\n(.*)$')
  lane = { key = key, queue = loadQueue(name), group = group }
  lane.source = lane.queue.settings.class .. '\n' .. group
  lanes[key] = lane
  return lane
end

local function windowKey(rank, laneKey)
  return prefix .. 'w' .. rank .. ':' .. laneKey
end

-- Ids have 36 characters. The order is in the score and in the first 16 of the member.
local function memberOf(seq, taskId, eligibleAt)
  return seq .. taskId .. eligibleAt
end

local function entryOf(lane, rank, member)
  return {
    lane = lane,
    queue = lane.queue,
    rank = rank,
    member = member,
    taskId = sub(member, 17, 52),
    eligibleAt = tonumber(sub(member, 53)),
    orderedAt = false,
    level = false,
  }
end

-- How many entries will be asked for at most: no more of them are read.
local wanted = 1

-- Reads ahead as it is emptied, more each time; what was taken from it stays in Redis until the end
-- of the script.
local function fetch(window)
  local size = math.min(window.batch, wanted)
  local found = call('ZRANGE', window.key, window.fetched, window.fetched + size - 1)
  window.members, window.at = found, 1
  window.fetched = window.fetched + #found
  window.isAllFetched = #found < size
  window.batch = window.batch * 4
end

local function windowOf(lane, rank)
  local window = lane[rank]
  if window == nil then
    window = { key = windowKey(rank, lane.key), members = {}, at = 1, fetched = 0, batch = 2, taken = 0 }
    lane[rank] = window
  end
  return window
end

-- The oldest entry of a window, nil when it is empty.
local function headOfWindow(lane, rank)
  if lane.queue[rank] == 0 then return nil end
  local window = windowOf(lane, rank)
  if window.head then return window.head end
  if not window.members[window.at] and not window.isAllFetched then fetch(window) end
  local member = window.members[window.at]
  if member then window.head = entryOf(lane, rank, member) end
  return window.head
end

local function levelOf(entry)
  local level = entry.level
  if not level then
    level = levelAt(entry.queue.settings, entry.rank, now - entry.eligibleAt)
    entry.level = level
  end
  return level
end

-- Scores are read when they are needed: to print one costs as much as all else about an entry.
local function orderOf(entry)
  local at = entry.orderedAt
  if not at then
    at = tonumber(call('ZSCORE', windowKey(entry.rank, entry.lane.key), entry.member))
    entry.orderedAt = at
  end
  return at
end

local function seqOf(entry)
  local seq = entry.seq
  if not seq then
    seq = tonumber(sub(entry.member, 1, 16))
    entry.seq = seq
  end
  return seq
end

local function isOlder(a, b)
  local orderOfA, orderOfB = orderOf(a), orderOf(b)
  if orderOfA ~= orderOfB then return orderOfA < orderOfB end
  return seqOf(a) < seqOf(b)
end

-- The order inside a queue.
local function isTakenBefore(a, b)
  local levelOfA, levelOfB = levelOf(a), levelOf(b)
  if levelOfA ~= levelOfB then return levelOfA < levelOfB end
  return isOlder(a, b)
end

-- Nil: the lane is empty.
local function headOf(lane)
  local best = lane.head
  if best then return best end
  for rank = 0, 2 do
    local head = headOfWindow(lane, rank)
    if head and (not best or isTakenBefore(head, best)) then best = head end
  end
  lane.head = best
  return best
end

-- The lane's first entry leaves it: the next one is its head.
local function takeFromWindow(entry)
  local window = entry.lane[entry.rank]
  window.at, window.taken, window.head = window.at + 1, window.taken + 1, nil
  entry.lane.head = nil
  entry.queue[entry.rank] = entry.queue[entry.rank] - 1
  entry.queue.isChanged = true
end
`;
