/**
 * The walk of a take over the lanes that the worker can do, best first. It goes by nodes:
 *
 * - A source stands for its lanes that were not looked at yet. Its score is that of the first of them
 *   in the index, which can be too small, never too large.
 * - A group has lanes of one queue and level that were looked at, oldest head first. One turn is all
 *   of theirs: when their queue is served, the group goes back as a whole.
 *
 * Where lanes stand is written once, at the end.
 */
export const walk = String.raw`
-- By class: the entry that waits for the tokens its queue shares. Nothing behind it is granted.
local blocked = {}
local isAskedSource = {}
-- A script must be short, over all sources: what it leaves makes the next take go on at once.
local isCutShort = false
local enterWalk, nextInWalk, parkInWalk, reopenParked, reopenSome
local dueIn, walkOverSources, walkOverNamed, saveWalk

do
local dueLeft, looksLeft, readsLeft = 150, 150, 630
-- Something was parked or put in its place, so that the next take finds other lanes first. A take that ended without
-- that, or a grant, would be made again and again, and none would ever grant anything.
local hasMoved = false
-- Of many sources the first lane of each is read first.
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
  local groups = queue.groups
  if not groups then
    groups = { false, false, [0] = false }
    queue.groups = groups
  end
  local group = groups[level]
  if not group then
    group = { queue = queue, level = level, class = queue.settings.class, score = 0, lanes = {} }
    groups[level] = group
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
  local to = from + math.max(1, math.min(source.batch, wanted, readsLeft)) - 1
  source.found = call('ZRANGE', prefix .. 'index:' .. source.key, from, to, 'WITHSCORES')
  source.at = 1
  source.read = from + #source.found / 2
  source.isAllRead = source.read <= to
  readsLeft = readsLeft - #source.found / 2
  loadLanes(source.found, 2)
  source.batch = source.batch * 4
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

-- The lane whose turn it is. It has left its group: it is to be parked, or to enter the walk anew.
function nextInWalk()
  while true do
    local node = firstNode()
    if not node then return nil end
    if looksLeft <= 0 or readsLeft <= 0 and (hasMoved or wanted <= count) then
      isCutShort = true
      return nil
    end
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

-- Lanes that are looked at in vain are counted: grants are counted by the take.
function parkInWalk(lane, untilMs)
  looksLeft, hasMoved = looksLeft - 1, true
  local queue = lane.queue
  lane.isInWalk, lane.parkedUntil = false, untilMs
  if not queue.parkedInWalk then queue.parkedInWalk = {} end
  append(queue.parkedInWalk, lane)
end

local function reopen(lane)
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
  while wild.reopenLeft > 0 do
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
function dueIn(key)
  if dueLeft <= 0 then return {} end
  local keys = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, dueLeft)
  loadLanes(keys, 1)
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

function walkOverSources()
  for index = firstKey, #ARGV do
    local key = ARGV[index]
    isAskedSource[key] = true
    catchUp(key)
    local class = string.match(key, '^[^\n]*')
    local source = { key = key, class = class, read = 0, batch = firstBatch, found = {}, at = -1 }
    advance(source)
    if source.score then enterNode(source) end
  end
end

-- A request that names queues looks at all their lanes that it can do, parked or not.
function walkOverNamed()
  local keys, isWanted = {}, {}
  for index = firstKey, #ARGV do isWanted[ARGV[index]] = true end
  for index = firstName, firstKey - 1 do
    local name = ARGV[index]
    local lanesKey = prefix .. 'lanes:' .. name
    if isForAll or call('SCARD', lanesKey) > #ARGV - firstKey + 1 then
      for group in pairs(isWanted) do keys[#keys + 1] = name .. '\n' .. group end
    else
      for _, key in ipairs(call('SMEMBERS', lanesKey)) do
        if isWanted[sub(key, #name + 2)] then keys[#keys + 1] = key end
      end
    end
  end
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do
    local lane = loadLane(key)
    if headOf(lane) then
      lane.isNamed = true
      enterWalk(lane)
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
`;
