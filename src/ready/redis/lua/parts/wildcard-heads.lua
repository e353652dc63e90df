-- What only a take needs: the heads of wildcard lanes.
do
-- Of lanes with a head of the same instant so many are compared by insert order.
local maxTies = 64

-- More lanes than this are not read ahead: the rest when they are needed.
local maxMembers = 300

local function namesOfMembers(wildcard, packed, keys)
  for taskType in string.gmatch(packed, '[^\n]+') do
    keys[#keys + 1] = wild.memberKey(wildcard, taskType)
    append(wildcard.members, keys[#keys])
  end
end

-- Those of wide ones are read as they are needed.
function loadMembers(wildcards)
  local new, fields = {}, {}
  for _, wildcard in ipairs(wildcards) do
    if not wildcard.heads then new[#new + 1], fields[#fields + 1] = wildcard, wildcard.key end
  end
  local keys, loaded = {}, {}
  for index, packed in ipairs(readFields(wild.membersKey, fields)) do
    local wildcard = new[index]
    if #keys >= maxMembers then break end
    if not wildcard.heads then
      wildcard.heads, wildcard.members, wildcard.lines = {}, {}, {}
      loaded[#loaded + 1] = wildcard
      wildcard.isWide = packed == wild.wideMark
      if packed and not wildcard.isWide then namesOfMembers(wildcard, packed, keys) end
    end
  end
  findLanes(keys, 1, #keys, 1)
  for _, wildcard in ipairs(loaded) do
    local count = #wildcard.members
    stepsLeft = stepsLeft - count * price.member - math.max(0, count - 1) * price.comparedMember
    for index, key in ipairs(wildcard.members) do
      local lane = loadLane(key)
      wildcard.members[index], lane.wildcard = lane, wildcard
      needWindows(lane)
    end
  end
  readWindows()
end

local function headOfNarrow(wildcard, rank)
  local oldest
  for _, lane in ipairs(wildcard.members) do
    local head = headOfWindow(lane, rank)
    if head and (not oldest or isOlder(head, oldest)) then oldest = head end
  end
  return oldest
end

local function isOlderItem(a, b)
  return isOlder(a.head, b.head)
end

local function readHeads(wildcard, rank, line)
  local to = line.read + math.min(line.batch, wanted) - 1
  line.found = call('ZRANGE', wild.headsKey(wildcard, rank), line.read, to, 'WITHSCORES')
  line.at, line.read = 1, line.read + #line.found / 2
  line.isAllRead = line.read <= to
  line.batch = line.batch * 4
  stepsLeft = stepsLeft - #line.found / 2 * price.lane
  loadLanes(line.found, 2)
end

-- Nil: all were looked at.
local function nextScore(wildcard, rank, line)
  if not line.found[line.at] and not line.isAllRead then readHeads(wildcard, rank, line) end
  return tonumber(line.found[line.at + 1])
end

local function lookAtNext(wildcard, rank, line)
  local lane = loadLane(line.found[line.at])
  line.at = line.at + 2
  lane.wildcard = wildcard
  local head = headOfWindow(lane, rank)
  if head then push(line.heap, { lane = lane, head = head }, isOlderItem) end
end

-- The first of those that were looked at may have given its head: it stands where its next one is.
local function firstLookedAt(rank, line)
  while line.heap[1] do
    local item = line.heap[1]
    local head = headOfWindow(item.lane, rank)
    if head == item.head then return item end
    popFirst(line.heap, isOlderItem)
    if head then
      item.head = head
      push(line.heap, item, isOlderItem)
    end
  end
end

local function headOfWide(wildcard, rank)
  local line = wildcard.lines[rank]
  if not line then
    line = { heap = {}, read = 0, found = {}, at = 1, batch = 3, isAllRead = false }
    wildcard.lines[rank] = line
  end
  while true do
    local first, score = firstLookedAt(rank, line), nextScore(wildcard, rank, line)
    if not score then return first and first.head end
    local at = first and orderOf(first.head)
    if first and (score > at or score == at and #line.heap >= maxTies) then return first.head end
    lookAtNext(wildcard, rank, line)
  end
end

function headOfMembers(wildcard, rank)
  if not wildcard.heads then loadMembers({ wildcard }) end
  local head = wildcard.heads[rank]
  if head == nil then
    head = (wildcard.isWide and headOfWide or headOfNarrow)(wildcard, rank) or false
    wildcard.heads[rank] = head
  end
  return head or nil
end
end
