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

local function entryOf(lane, rank, member, score)
  return {
    lane = lane,
    queue = lane.queue,
    rank = rank,
    taskId = string.sub(member, 17, 52),
    eligibleAt = tonumber(string.sub(member, 53)),
    orderedAt = tonumber(score),
    seq = tonumber(string.sub(member, 1, 16)),
  }
end

-- Reads ahead as it is emptied; what was taken from it stays in Redis until the end of the script.
local function fetch(window)
  local last = window.fetched + window.batch - 1
  local found = call('ZRANGE', window.key, window.fetched, last, 'WITHSCORES')
  window.members, window.at = found, 1
  window.fetched = window.fetched + #found / 2
  window.isAllFetched = #found / 2 < window.batch
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
  if window.at > #window.members and not window.isAllFetched then fetch(window) end
  local member = window.members[window.at]
  if member then window.head = entryOf(lane, rank, member, window.members[window.at + 1]) end
  return window.head
end

local function levelOf(entry)
  return levelAt(entry.queue.settings, entry.rank, now - entry.eligibleAt)
end

local function isOlder(a, b)
  if a.orderedAt ~= b.orderedAt then return a.orderedAt < b.orderedAt end
  return a.seq < b.seq
end

-- The order inside a queue.
local function isTakenBefore(a, b)
  local levelOfA, levelOfB = levelOf(a), levelOf(b)
  if levelOfA ~= levelOfB then return levelOfA < levelOfB end
  return isOlder(a, b)
end

local function headOf(lane)
  local best
  for rank = 0, 2 do
    local head = headOfWindow(lane, rank)
    if head and (not best or isTakenBefore(head, best)) then best = head end
  end
  return best
end

-- The lane's first entry leaves it: the next one is its head.
local function takeFromWindow(entry)
  local window = entry.lane[entry.rank]
  window.at, window.taken, window.head = window.at + 2, window.taken + 1, nil
  entry.queue[entry.rank] = entry.queue[entry.rank] - 1
  entry.queue.isChanged = true
end
`;
