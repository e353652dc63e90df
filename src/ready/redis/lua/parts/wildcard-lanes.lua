-- include: ready-lanes

-- A wildcard lane is all lanes of one queue and one capability set: its key is that of a lane of type `*`,
-- which no task can have. Workers for every type walk over wildcard lanes, so that a queue costs them
-- the same whatever its number of types. They are kept from the first such take on.
--
-- - `members`: of each wildcard lane the types of its lanes that hold something, or the mark `*` once
--   there were more than a few: it is wide then until it is empty.
-- - `heads:` rank and key of a wide one: its lanes by when the oldest entry of that rank became eligible.
--
-- In its source the score of a wildcard lane can be too small, never too large, as that of any lane.
-- So only an offer or a change of settings can lower it; a take of a wildcard lane corrects it.
-- A function of Lua has 200 local variables at most: those of wildcard lanes are in a table.
local wild = { membersKey = prefix .. 'members', wideMark = '*', opened = {}, maySooner = {} }
-- A wildcard lane of more members than this keeps their heads in order.
wild.maxNarrow = 16
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
  if #types <= wild.maxNarrow then return table.concat(types, '\n') end
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
