-- include: queues ageing-table

-- Lanes and their windows. A window has the entries of one rank in the order of their line: by when
-- they became eligible, then by insert order. So the first is the oldest and, whatever the ageing, the
-- most urgent of its window: three heads tell all about a lane.
--
-- `windows` has a field for each window that holds something. A short one is there packed: however many
-- of them a script needs, it reads and writes them with one call each. Past 64 entries it is long: the
-- field only says so, and the entries are in `w:` rank and lane, a sorted set, until it is empty.
--
-- A wildcard lane is all lanes of one queue and one capability set, as a worker for every type sees
-- them: its windows are those of its members, merged. See wildcard-lanes.lua.
--
-- Lua hashes every byte of every text that it makes. So what plain offers join to a short window goes
-- into `tails`, once there are 8 in `windows`, and plain takes only read the rest: each of them works on a
-- part. Whoever opens a window puts both together.
local windowsKey = prefix .. 'windows'
local tailsKey = prefix .. 'tails'
-- Of an entry: insert order (16 characters), id (36), when it became eligible by our clock (8), and
-- by that of the line (8). The last is the score in a sorted set, and the rest its member.
local memberSize, packedSize = 60, 68
local maxShortSize = 64 * packedSize
-- From this size on what comes goes into a tail. As long as there is one, this many are before it: a
-- window of as many or fewer has none.
local headSize, leastBeforeTail = 8 * packedSize, 4
local longMark = 'long'
local wildcardByte = byte('*')
-- To join a number to a text costs more than to look it up.
local rankTexts = { [0] = '0', '1', '2' }
local lanes = {}
local changedWindows = {}
local unreadWindows = {}
-- Of a wildcard lane; only a take asks for it.
local headOfMembers, loadMembers

local function queueNameOf(laneKey)
  return sub(laneKey, 1, find(laneKey, '\n', 1, true) - 1)
end

local function makeLane(key, queue)
  local group = sub(key, #queue.name + 2)
  local lane = {
    false,
    false,
    [0] = false,
    key = key,
    queue = queue,
    group = group,
    isWildcard = byte(group) == wildcardByte,
    wildcard = false,
    source = queue.settings.class .. '\n' .. group,
    head = false,
    hasNewHead = false,
    isInWalk = false,
    storedScore = false,
  }
  lanes[key] = lane
  return lane
end

local function loadLane(key)
  local lane = lanes[key]
  if lane then return lane end
  return makeLane(key, loadQueue(queueNameOf(key)))
end

-- With their queues. In the list every so many is a key.
local function findLanes(keys, first, last, step)
  local new, names = {}, {}
  for at = first, last, step do
    local key = keys[at]
    if not lanes[key] then
      new[#new + 1] = key
      names[#names + 1] = queueNameOf(key)
    end
  end
  loadQueues(names)
  for index, key in ipairs(new) do
    if not lanes[key] then makeLane(key, queues[names[index]]) end
  end
end

-- To be read together with others that a script will need.
local function needWindow(lane, rank)
  local window = lane[rank]
  if window then return window end
  window = {
    lane = lane,
    rank = rank,
    field = rankTexts[rank] .. lane.key,
    text = '',
    isLong = false,
    isChanged = false,
    hasTail = false,
    taken = 0,
    head = false,
  }
  lane[rank] = window
  if lane.queue[rank] > 0 then
    stepsLeft = stepsLeft - price.window
    unreadWindows[#unreadWindows + 1] = window
  end
  return window
end

local function becomeLong(window)
  window.isLong, window.text = true, ''
  window.key = prefix .. 'w:' .. window.field
  window.added, window.members, window.at, window.fetched, window.batch = {}, {}, 1, 0, 2
end

local readWindows

do
local function readTails(windows)
  local tailed, fields = {}, {}
  for _, window in ipairs(windows) do
    if window.lane.queue[window.rank] > leastBeforeTail then
      tailed[#tailed + 1] = window
      fields[#fields + 1] = window.field
    end
  end
  for index, tail in ipairs(readFields(tailsKey, fields)) do
    if tail then
      local window = tailed[index]
      window.text, window.hasTail = window.text .. tail, true
    end
  end
end

function readWindows()
  local unread, fields = unreadWindows, {}
  unreadWindows = {}
  for index, window in ipairs(unread) do fields[index] = window.field end
  for index, stored in ipairs(readFields(windowsKey, fields)) do
    local window = unread[index]
    if stored == longMark then
      becomeLong(window)
      window.wasLong = true
      if call('EXISTS', window.key) == 0 then missPart(window.key) end
    elseif stored then
      window.text = stored
    end
  end
  readTails(unread)
end
end

local function windowOf(lane, rank)
  local window = lane[rank]
  if not window then
    window = needWindow(lane, rank)
    readWindows()
  end
  return window
end

local function needWindows(lane)
  local queue = lane.queue
  for rank = 0, 2 do
    if queue[rank] > 0 then needWindow(lane, rank) end
  end
end

-- With their windows too; wildcard lanes with their members where a script reads those.
local function loadLanes(keys, step)
  findLanes(keys, 1, #keys, step)
  local wildcards = {}
  for at = 1, #keys, step do
    local lane = lanes[keys[at]]
    if lane.isWildcard then wildcards[#wildcards + 1] = lane else needWindows(lane) end
  end
  if #wildcards > 0 and loadMembers then loadMembers(wildcards) end
  readWindows()
end

local function touch(window)
  if window.isChanged then return end
  window.isChanged = true
  changedWindows[#changedWindows + 1] = window
end

-- When it is not known, orderedAt is false.
local function entryOf(lane, rank, member, eligibleAt, orderedAt)
  return {
    lane = lane,
    queue = lane.queue,
    rank = rank,
    member = member,
    taskId = sub(member, 17, 52),
    eligibleAt = eligibleAt,
    orderedAt = orderedAt,
    level = false,
  }
end

local function entryOfMember(lane, rank, member)
  return entryOf(lane, rank, member, (struct.unpack('<d', member, 53)), false)
end

-- Of a short window, after so many bytes of it.
local function entryAfter(window, size)
  local text = window.text
  local eligibleAt, orderedAt = struct.unpack('<dd', text, size + 53)
  return entryOf(window.lane, window.rank, sub(text, size + 1, size + memberSize), eligibleAt, orderedAt)
end

-- How many entries will be asked for at most: no more of them are read.
local wanted = 1

local headOfWindow

do
-- Reads a long one ahead as it is emptied, more each time; what was taken from it stays in Redis until
-- the end of the script.
local function fetch(window)
  local size = math.min(window.batch, wanted)
  local found = call('ZRANGE', window.key, window.fetched, window.fetched + size - 1)
  window.members, window.at = found, 1
  window.fetched = window.fetched + #found
  window.isAllFetched = #found < size
  window.batch = window.batch * 4
end

local function headOfLong(window)
  if not window.members[window.at] and not window.isAllFetched then fetch(window) end
  local member = window.members[window.at]
  return member and entryOfMember(window.lane, window.rank, member)
end

-- The oldest entry of a window, nil when it is empty.
function headOfWindow(lane, rank)
  if lane.queue[rank] == 0 then return nil end
  if lane.isWildcard then return headOfMembers(lane, rank) end
  local window = windowOf(lane, rank)
  if window.head then return window.head end
  if window.isLong then
    window.head = headOfLong(window)
  elseif window.taken * packedSize < #window.text then
    window.head = entryAfter(window, window.taken * packedSize)
  end
  return window.head or nil
end
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
    at = tonumber(call('ZSCORE', entry.lane[entry.rank].key, entry.member))
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
  return isBefore(orderOf(a), seqOf(a), orderOf(b), seqOf(b))
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
  best = nil
  for rank = 0, 2 do
    local head = headOfWindow(lane, rank)
    if head and (not best or isTakenBefore(head, best)) then best = head end
  end
  lane.head = best or false
  return best
end

-- The lane's first entry leaves it: the next one is its head.
local function takeFromWindow(entry)
  local window = entry.lane[entry.rank]
  window.taken, window.head = window.taken + 1, false
  if window.isLong then window.at = window.at + 1 end
  entry.lane.head = false
  local wildcard = entry.lane.wildcard
  if wildcard then wildcard.head, wildcard.heads[entry.rank] = false, nil end
  entry.queue[entry.rank] = entry.queue[entry.rank] - 1
  entry.queue.isChanged = true
  touch(window)
end

local function sizeOf(window)
  if window.isLong then return call('ZCARD', window.key) + #window.added / 2 end
  return #window.text / packedSize
end

local saveWindows

do
local function writeLong(window)
  callWithAll('ZADD', window.key, window.added)
  if window.taken > 0 then call('ZREMRANGEBYRANK', window.key, 0, window.taken - 1) end
end

local function isLongEmpty(window)
  if window.lane.queue[window.rank] == 0 then return true end
  local mayBe = not window.head and (window.taken > 0 or window.hasRemoved)
  return mayBe and call('EXISTS', window.key) == 0
end

-- A field of a long one is written when it has become long, and deleted when it is empty.
function saveWindows()
  local stored, empty, joined = {}, {}, {}
  for _, window in ipairs(changedWindows) do
    local text = window.text
    if window.isLong then
      writeLong(window)
      text = isLongEmpty(window) and '' or longMark
    elseif window.taken > 0 then
      text = sub(text, window.taken * packedSize + 1)
    end
    if window.hasTail then joined[#joined + 1] = window.field end
    if text == '' then
      empty[#empty + 1] = window.field
    elseif text ~= longMark or not window.wasLong then
      stored[#stored + 1] = window.field
      stored[#stored + 1] = text
    end
  end
  callWithAll('HSET', windowsKey, stored)
  callWithAll('HDEL', windowsKey, empty)
  callWithAll('HDEL', tailsKey, joined)
end
end
