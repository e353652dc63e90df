-- The walk of a take over the lanes that the worker can do, best first. It goes by nodes:
--
-- - A source stands for its lanes that were not looked at yet. Its score is that of the first of them
--   in the index, which can be too small, never too large.
-- - A group has lanes of one queue and level that were looked at, oldest head first. One turn is all
--   of theirs: when their queue is served, the group goes back as a whole.
--
-- Where lanes stand is written once, at the end.
-- By class: the entry that waits for the tokens its queue shares. Nothing behind it is granted.
local blocked = {}
local isAskedSource = {}
-- A script must be short, over all sources: what it leaves makes the next take go on at once.
local isCutShort = false
-- What the next script of the same take leaves out: classes that are blocked or, of queues that were named, those that
-- are closed. Nil: all was looked at.
local leftOut
local enterWalk, nextInWalk, parkInWalk, reopenParked, reopenSome
local walkOverSources, walkOverNamed, saveWalk

do
-- A wildcard lane has lanes of its own.
local dueLeft = isForAll and 40 or 150
-- Something was parked or put in its place, so that the next take finds other lanes first. A take that ended without
-- that, without a grant and without anything to leave out would be made again and again, and none would ever grant anything.
local hasMoved = false
-- Of many sources the first lane of each is read first, and then few more at a time.
local firstBatch = #ARGV - firstKey < 50 and 3 or 1

local enterNode, firstNode, removeFirstNode

do
local nodes = {}
-- Whoever was served comes after all others of its level: most nodes come in their order, and stand in a
-- list. Only for the rest there is a heap.
local inOrder, firstInOrder, lastInOrder = {}, 1, 0

local function standsBefore(a, b)
  return a.score < b.score
end

function enterNode(node)
  if firstInOrder > lastInOrder or inOrder[lastInOrder].score <= node.score then
    lastInOrder = lastInOrder + 1
    inOrder[lastInOrder] = node
  else
    push(nodes, node, standsBefore)
  end
end

function firstNode()
  local first, other = inOrder[firstInOrder], nodes[1]
  if first and (not other or first.score < other.score) then return first end
  return other
end

function removeFirstNode(node)
  if node == inOrder[firstInOrder] then
    inOrder[firstInOrder] = nil
    firstInOrder = firstInOrder + 1
  else
    popFirst(nodes, standsBefore)
  end
end
end

local function isOlderLane(a, b)
  return isOlder(headOf(a), headOf(b))
end

-- Half a step behind a source of the same score: that may hold an older lane of the same queue.
local function scoreOfGroup(group)
  return scoreOf(group.level, group.queue.turn) + 0.5
end

local function groupOf(queue, level)
  local group = queue[3 + level]
  if not group then
    group = { queue = queue, level = level, class = queue.settings.class, score = 0, lanes = {} }
    queue[3 + level] = group
  end
  return group
end

-- To be called when a lane is found, or has another head.
function enterWalk(lane)
  local head = headOf(lane)
  lane.isInWalk = head ~= nil
  if not head then
    lane.hasNewHead = true
    return
  end
  local group = groupOf(lane.queue, levelOf(head))
  push(group.lanes, lane, isOlderLane)
  if #group.lanes == 1 then
    group.score = scoreOfGroup(group)
    enterNode(group)
  end
end

-- More each time, and no more lanes than there can be grants: all about them is read at once.
local function readAhead(source)
  local from = source.read
  local to = from + math.max(1, math.min(source.batch, wanted, math.floor(stepsLeft / price.lane))) - 1
  source.found = call('ZRANGE', prefix .. 'index:' .. source.key, from, to, 'WITHSCORES')
  source.at = 1
  source.read = from + #source.found / 2
  source.isAllRead = source.read <= to
  stepsLeft = stepsLeft - #source.found / 2 * price.lane
  loadLanes(source.found, 2)
  source.batch = source.batch * (firstBatch + 1)
end

-- To its next lane that was not looked at; without one its score is nil.
local function advance(source)
  source.at = source.at + 2
  if not source.found[source.at] and not source.isAllRead then readAhead(source) end
  source.score = tonumber(source.found[source.at + 1])
end

local function lookAtFirstOf(source)
  local lane = loadLane(source.found[source.at])
  lane.storedScore = source.score
  local head = headOf(lane)
  if not head or source.score ~= scoreOf(levelOf(head), lane.queue.turn) then hasMoved = true end
  removeFirstNode(source)
  advance(source)
  if source.score then enterNode(source) end
  if not lane.isInWalk and not lane.parkedUntil then enterWalk(lane) end
end

-- Of queues that were named, those of which all lanes are parked. A take by name looks at parked lanes as well.
local function closedNames()
  local isClosed, names = {}, {}
  for _, lane in pairs(lanes) do
    local name = lane.queue.name
    if lane.isNamed then
      local isLaneClosed = lane.parkedUntil or blocked[lane.queue.settings.class] or not headOf(lane)
      isClosed[name] = isClosed[name] ~= false and isLaneClosed and true or false
    end
  end
  for name, areAll in pairs(isClosed) do
    if areAll then names[#names + 1] = name end
  end
  return names
end

local function blockedClasses()
  local classes = {}
  for class in pairs(blocked) do classes[#classes + 1] = class end
  return classes
end

-- Once it has done enough, a take ends early, if the next one begins elsewhere.
local function endsEarly()
  if stepsLeft > 0 then return false end
  local found = isByName and closedNames() or blockedClasses()
  if #found == 0 and wanted > count and (isByName or not hasMoved) then return false end
  isCutShort, leftOut = true, found
  return true
end

-- The lane whose turn it is. It has left its group: it is to be parked, or to enter the walk anew.
function nextInWalk()
  while true do
    local node = firstNode()
    if not node then return nil end
    if endsEarly() then return nil end
    if blocked[node.class] then
      removeFirstNode(node)
    elseif node.key then
      lookAtFirstOf(node)
    elseif node.score ~= scoreOfGroup(node) then
      removeFirstNode(node)
      node.score = scoreOfGroup(node)
      enterNode(node)
    else
      local lane = popFirst(node.lanes, isOlderLane)
      if #node.lanes == 0 then removeFirstNode(node) end
      return lane
    end
  end
end

function parkInWalk(lane, untilMs)
  stepsLeft, hasMoved = stepsLeft - price.movedLane, true
  local queue = lane.queue
  lane.isInWalk, lane.parkedUntil = false, untilMs
  if not queue.parkedInWalk then queue.parkedInWalk = {} end
  append(queue.parkedInWalk, lane)
end

local function reopen(lane)
  stepsLeft, hasMoved = stepsLeft - price.movedLane, true
  lane.parkedUntil, lane.isReopened = nil, true
  local isAsked = lane.isNamed or isAskedSource[lane.source]
  if isAsked and not lane.isInWalk then enterWalk(lane) end
end

-- Those parked by this take, and those parked before it.
function reopenParked(queue)
  local parked = queue.parkedInWalk or {}
  queue.parkedInWalk = nil
  for _, lane in ipairs(parked) do reopen(lane) end
  if queue.parked == 0 or queue.hasReopened then return end
  queue.hasReopened = true
  local keys = parkedToOpen(queue)
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do
    local lane = loadLane(key)
    lane.wasParked = true
    reopen(lane)
  end
end

-- Of queues that have opened and had many parked lanes.
function reopenSome()
  while wild.reopenLeft > 0 and stepsLeft > 0 do
    local name = call('SRANDMEMBER', prefix .. 'reopening')
    if not name then
      call('HDEL', metaKey, 'reopening')
      meta.isReopening = false
      return
    end
    isCutShort = true
    local keys, areAll = wild.popReopened(name)
    loadLanes(keys, 1)
    for _, key in ipairs(keys) do
      local lane = loadLane(key)
      lane.wasParked = true
      reopen(lane)
    end
    if areAll then
      call('SREM', prefix .. 'reopening', name)
      if call('SREM', prefix .. 'reopening-again', name) == 1 then return reopenLater(name) end
    end
  end
end

-- Levels and openings that changed by time alone. So many at once: a script must be short, and the
-- rest has its turn with the next take.
local function dueIn(key)
  if dueLeft <= 0 then return {} end
  local keys = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, dueLeft)
  loadLanes(keys, 1)
  stepsLeft = stepsLeft - #keys * price.lane
  dueLeft = dueLeft - #keys
  if dueLeft <= 0 then isCutShort = true end
  return keys
end

local function catchUp(source)
  for _, key in ipairs(dueIn(prefix .. 'parked:' .. source)) do
    local lane = loadLane(key)
    lane.wasParked = true
    reopen(lane)
  end
  for _, key in ipairs(dueIn(prefix .. 'alarms:' .. source)) do reopen(loadLane(key)) end
end

-- Answers after how many it had done enough: the rest is for other scripts. Nil: it looks at all.
function walkOverSources()
  for index = firstKey, #ARGV do
    local key = ARGV[index]
    if stepsLeft <= 0 and index > firstKey then return index - firstKey end
    stepsLeft = stepsLeft - price.source
    isAskedSource[key] = true
    catchUp(key)
    local class = string.match(key, '^[^\n]*')
    local source = { key = key, class = class, read = 0, batch = firstBatch, found = {}, at = -1 }
    advance(source)
    if source.score then enterNode(source) end
  end
end

local function lanesOfNamed(name, isWanted)
  local lanesKey, keys = prefix .. 'lanes:' .. name, {}
  if isForAll or call('SCARD', lanesKey) > #ARGV - firstKey + 1 then
    for group in pairs(isWanted) do keys[#keys + 1] = name .. '\n' .. group end
    return keys
  end
  for _, key in ipairs(call('SMEMBERS', lanesKey)) do
    if isWanted[sub(key, #name + 2)] then keys[#keys + 1] = key end
  end
  return keys
end

-- A request that names queues looks at all their lanes that it can do, parked or not.
function walkOverNamed()
  local isWanted = {}
  for index = firstKey, #ARGV do isWanted[ARGV[index]] = true end
  local namesAtOnce = 30
  for first = firstName, firstKey - 1, namesAtOnce do
    if stepsLeft <= 0 and first > firstName then return first - firstName end
    local keys = {}
    for index = first, math.min(first + namesAtOnce, firstKey) - 1 do
      append(keys, unpack(lanesOfNamed(ARGV[index], isWanted)))
    end
    stepsLeft = stepsLeft - #keys * price.lane
    loadLanes(keys, 1)
    for _, key in ipairs(keys) do
      local lane = loadLane(key)
      if headOf(lane) then
        lane.isNamed = true
        enterWalk(lane)
      end
    end
  end
end

function saveWalk()
  local seen = {}
  for _, lane in pairs(lanes) do seen[#seen + 1] = lane end
  for _, lane in ipairs(seen) do
    if lane.parkedUntil then
      parkLane(lane, lane.parkedUntil)
    elseif lane.hasNewHead or lane.isReopened then
      openLane(lane)
    elseif lane.storedScore then
      local score = scoreOf(levelOf(headOf(lane)), lane.queue.turn)
      -- A wildcard lane was not told when others took its first entries: its level may be another.
      if score ~= lane.storedScore and lane.isWildcard then
        openLane(lane)
      elseif score ~= lane.storedScore then
        setScore(unsavedIndex, lane, score)
      end
    end
  end
  saveSources()
end
end
