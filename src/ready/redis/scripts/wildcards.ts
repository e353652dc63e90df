/** A wildcard lane of more members than this keeps their heads in order. */
const maxNarrow = 16;

/**
 * A wildcard lane is all lanes of one queue and one capability set: its key is that of a lane of type `*`,
 * which no task can have. Workers for every type walk over wildcard lanes, so that a queue costs them
 * the same whatever its number of types. They are kept from the first such take on.
 *
 * - `members`: of each wildcard lane the types of its lanes that hold something, or the mark `*` once
 *   there were more than a few: it is wide then until it is empty.
 * - `heads:` rank and key of a wide one: its lanes by when the oldest entry of that rank became eligible.
 *
 * In its source the score of a wildcard lane can be too small, never too large, as that of any lane.
 * So only an offer or a change of settings can lower it; a take of a wildcard lane corrects it.
 */
export const wildcards = String.raw`
-- A function of Lua has 200 local variables at most: those of wildcard lanes are in a table.
local wild = { membersKey = prefix .. 'members', wideMark = '*', opened = {}, maySooner = {} }
-- What a script does may make lanes more urgent, or only less, as a take.
local opensSooner = true

function wild.keyOf(lane)
  return lane.queue.name .. '\n*' .. sub(lane.group, (find(lane.group, '\n', 1, true)))
end

-- Of a member, by its type.
function wild.memberKey(wildcard, taskType)
  return wildcard.queue.name .. '\n' .. taskType .. sub(wildcard.group, 2)
end

function wild.typeOf(lane)
  return sub(lane.group, 1, find(lane.group, '\n', 1, true) - 1)
end

function wild.headsKey(wildcard, rank)
  return prefix .. 'heads:' .. rankTexts[rank] .. wildcard.key
end

local function noteOpened(lane, isSooner)
  if not meta.wildcards then return end
  wild.opened[#wild.opened + 1] = lane
  if isSooner then wild.maySooner[lane] = true end
end

-- By wildcard lane: those of its members that were opened.
function wild.openedByKey()
  local byKey, keys = {}, {}
  for _, lane in ipairs(wild.opened) do
    local key = wild.keyOf(lane)
    if not byKey[key] then
      byKey[key] = {}
      keys[#keys + 1] = key
    end
    append(byKey[key], lane)
  end
  return byKey, keys
end

-- Scores of the windows' heads, exactly: all changes of heads are noted here.
function wild.saveHeads(wildcard, opened)
  for rank = 0, 2 do
    local set, removed = {}, {}
    for _, lane in ipairs(opened) do
      local head = headOfWindow(lane, rank)
      if head then append(set, orderOf(head), lane.key) else append(removed, lane.key) end
    end
    local key = wild.headsKey(wildcard, rank)
    callWithAll('ZADD', key, set)
    callWithAll('ZREM', key, removed)
  end
end

function wild.isEmpty(wildcard)
  return call('EXISTS', wild.headsKey(wildcard, 0), wild.headsKey(wildcard, 1), wild.headsKey(wildcard, 2)) == 0
end

-- Its members after the change, packed; empty: there are none.
function wild.narrowMembers(wildcard, packed, opened)
  local isOpened, types = {}, {}
  for _, lane in ipairs(opened) do
    isOpened[wild.typeOf(lane)] = true
    if headOf(lane) then append(types, wild.typeOf(lane)) end
  end
  for taskType in string.gmatch(packed or '', '[^\n]+') do
    if not isOpened[taskType] then append(types, taskType) end
  end
  if #types <= ${maxNarrow} then return table.concat(types, '\n') end
  local all = {}
  for index, taskType in ipairs(types) do all[index] = wild.memberKey(wildcard, taskType) end
  loadLanes(all, 1)
  for index, key in ipairs(all) do all[index] = loadLane(key) end
  wild.saveHeads(wildcard, all)
  return wild.wideMark
end

function wild.changedMembers(wildcard, packed, opened)
  if packed ~= wild.wideMark then return wild.narrowMembers(wildcard, packed, opened) end
  wild.saveHeads(wildcard, opened)
  return wild.isEmpty(wildcard) and '' or wild.wideMark
end
`;

/** Needs `sources` besides. */
export const savingWildcards = String.raw`
-- Of those that became more urgent: no score may be too large. A parked one may be open to its new head:
-- it is in the index again, and stays parked besides, since its former head may still be the first.
function wild.lowerScore(wildcard, lane)
  if not wild.maySooner[lane] then return end
  local head = headOf(lane)
  if not head then return end
  local level = levelOf(head)
  lowerTo(soonerIndex, wildcard, scoreOf(level, lane.queue.turn))
  lowerTo(soonerAlarms, wildcard, promotesAt(lane, level))
end

function saveWildcards()
  if #wild.opened == 0 then return end
  local byKey, keys = wild.openedByKey()
  wild.opened = {}
  local stored, empty = {}, {}
  findLanes(keys, 1, #keys, 1)
  for index, packed in ipairs(readFields(wild.membersKey, keys)) do
    local key = keys[index]
    local wildcard, opened = loadLane(key), byKey[key]
    local members = wild.changedMembers(wildcard, packed, opened)
    if members == '' then
      empty[#empty + 1] = key
      leaveSource(wildcard)
    else
      if members ~= packed then append(stored, key, members) end
      if not packed then registerSource(wildcard.source) end
      for _, lane in ipairs(opened) do wild.lowerScore(wildcard, lane) end
    end
  end
  callWithAll('HSET', wild.membersKey, stored)
  callWithAll('HDEL', wild.membersKey, empty)
end
`;

/** What only a take needs: the heads of wildcard lanes. */
export const walkingWildcards = String.raw`
do
-- Of lanes with a head of the same instant so many are compared by insert order.
local maxTies = 64

-- Those of wide ones are read as they are needed.
function loadMembers(wildcards)
  local new, fields = {}, {}
  for _, wildcard in ipairs(wildcards) do
    if not wildcard.heads then
      wildcard.heads, wildcard.members, wildcard.lines = {}, {}, {}
      new[#new + 1], fields[#fields + 1] = wildcard, wildcard.key
    end
  end
  local keys = {}
  for index, packed in ipairs(readFields(wild.membersKey, fields)) do
    local wildcard = new[index]
    wildcard.isWide = packed == wild.wideMark
    if packed and not wildcard.isWide then
      for taskType in string.gmatch(packed, '[^\n]+') do
        keys[#keys + 1] = wild.memberKey(wildcard, taskType)
        append(wildcard.members, keys[#keys])
      end
    end
  end
  findLanes(keys, 1, #keys, 1)
  for _, wildcard in ipairs(new) do
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
`;
