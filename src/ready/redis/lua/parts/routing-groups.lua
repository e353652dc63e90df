-- include: wildcard-lanes

-- The sources that lanes are taken from. A source is all lanes of one task type, one capability set
-- and one set of shared limits (its class): a worker can do all of them or none.
--
-- - `lanes:` queue: its lanes that hold something.
-- - `index:` source: lanes that may be open, by level and turn. A turn can be too small, never too
--   large, once its queue was served elsewhere: whoever finds it first corrects it.
-- - `parked:` source: lanes that are closed, by when to look again; `parked-of:` queue: the same lanes.
-- - `reopening`: queues that have opened and had too many parked lanes to reopen them at once;
--   `reopening-of:` queue: those lanes. Every take reopens some.
-- - `alarms:` source: when to look at a lane again, parked or not: its level changes by age, or the
--   entry that stands in its way goes.
-- - `sources`: all sources, with lanes or without, in the order in which they came; `sources-of:` limit:
--   those that share it.
local sourcesKey = prefix .. 'sources'
local levelSpan = 2 ^ 50
-- By source and lane: scores that are to be written, or false. One call then writes those of many lanes.
local unsavedIndex, unsavedAlarms = {}, {}
-- The same, written only where they are lower.
local soonerIndex, soonerAlarms = {}, {}
local saveWildcards

local function setScore(unsaved, lane, score)
  local scores = unsaved[lane.source]
  if not scores then
    scores = {}
    unsaved[lane.source] = scores
  end
  scores[lane.key] = score
end

local function lowerTo(unsaved, lane, score)
  local scores = unsaved[lane.source]
  local before = scores and scores[lane.key]
  if score < huge and (not before or score < before) then setScore(unsaved, lane, score) end
end

local registerSource, registerAll, saveEmptied, saveSources, limitsOf

do
local function saveScores(unsaved, kind)
  for source, scores in pairs(unsaved) do
    local key, set, size, removed = prefix .. kind .. source, {}, 0, {}
    for laneKey, score in pairs(scores) do
      if score then
        set[size + 1], set[size + 2] = digits(score), laneKey
        size = size + 2
      else
        removed[#removed + 1] = laneKey
      end
    end
    callWithAll('ZADD', key, set)
    callWithAll('ZREM', key, removed)
    unsaved[source] = nil
  end
end

local function saveLower(unsaved, kind)
  for source, scores in pairs(unsaved) do
    for laneKey, score in pairs(scores) do
      call('ZADD', prefix .. kind .. source, 'LT', score, laneKey)
    end
    unsaved[source] = nil
  end
end

function saveSources()
  saveEmptied()
  saveWildcards()
  registerAll()
  saveScores(unsavedIndex, 'index:')
  saveScores(unsavedAlarms, 'alarms:')
  saveLower(soonerIndex, 'index:')
  saveLower(soonerAlarms, 'alarms:')
end
end

do
-- Empty ones are forgotten past this many.
local maxSources = 10000
-- Sources that a lane is about to enter: all of a script, and those that are not registered yet.
local isFilling, unregistered = {}, {}

-- The names of the limits that the queues of a source share.
function limitsOf(source)
  return string.gmatch(string.match(source, '^[^\n]*'), '[^\t]+')
end

-- Some at a time: a script must be short. Servers keep those that are gone until they read all anew.
local function pruneSources(atOnce)
  if call('ZCARD', sourcesKey) <= maxSources then return end
  local empty = {}
  for _, source in ipairs(call('ZRANDMEMBER', sourcesKey, atOnce)) do
    if stepsLeft <= 0 then break end
    stepsLeft = stepsLeft - price.newSource
    local held = call('EXISTS', prefix .. 'index:' .. source, prefix .. 'parked:' .. source)
    if held == 0 and not isFilling[source] then empty[#empty + 1] = source end
  end
  callWithAll('ZREM', sourcesKey, empty)
  for _, source in ipairs(empty) do
    for limit in limitsOf(source) do
      stepsLeft = stepsLeft - price.newSource
      call('SREM', prefix .. 'sources-of:' .. limit, source)
    end
  end
  if call('HINCRBY', metaKey, 'pruned', #empty) < maxSources then return end
  call('HSET', metaKey, 'pruned', 0)
  meta.sources = meta.generation .. '.' .. whole(nextNumber()) .. ':0'
end

-- Sources stay when they are empty: one that fills and empties all the time is not news each time.
function registerSource(source)
  if isFilling[source] then return end
  isFilling[source] = true
  unregistered[#unregistered + 1] = source
end

function registerAll()
  if #unregistered == 0 then return end
  local new = {}
  for from = 1, #unregistered, chunk do
    local some = { unpack(unregistered, from, math.min(from + chunk - 1, #unregistered)) }
    for index, known in ipairs(call('ZMSCORE', sourcesKey, unpack(some))) do
      if not known then append(new, nextNumber(), some[index]) end
    end
  end
  unregistered = {}
  if #new == 0 then return end
  callWithAll('ZADD', sourcesKey, new)
  for index = 2, #new, 2 do
    for limit in limitsOf(new[index]) do
      call('SADD', prefix .. 'sources-of:' .. limit, new[index])
    end
  end
  -- More than came: those that are empty become few.
  pruneSources(20 + #new)
  meta.sources = string.match(meta.sources, '^[^:]*') .. ':' .. whole(new[#new - 1])
  call('HSET', metaKey, 'sources', meta.sources)
end
end

local function unpark(lane)
  local queue = lane.queue
  if queue.parked == 0 or call('ZREM', prefix .. 'parked:' .. lane.source, lane.key) == 0 then return end
  call('SREM', prefix .. 'parked-of:' .. queue.name, lane.key)
  if meta.isReopening then call('SREM', prefix .. 'reopening-of:' .. queue.name, lane.key) end
  queue.parked = queue.parked - 1
  queue.isChanged = true
end

local function leaveSource(lane)
  setScore(unsavedIndex, lane, false)
  setScore(unsavedAlarms, lane, false)
  unpark(lane)
end

-- When a head becomes more urgent than this level, which none is yet.
local function promotesAt(lane, level)
  local first = huge
  for rank = level, 2 do
    local head = level > 0 and headOfWindow(lane, rank)
    if head then
      first = math.min(first, head.eligibleAt + ageFor(lane.queue.settings, rank, level - 1))
    end
  end
  return first
end

-- When a head reaches this level, at which another one is: if it is older, it comes first from then on.
local function catchesUpAt(lane, level)
  local first = huge
  for rank = level + 1, 2 do
    local head = headOfWindow(lane, rank)
    local at = head and head.eligibleAt + ageFor(lane.queue.settings, rank, level) or huge
    if at > now then first = math.min(first, at) end
  end
  return first
end

-- When to look at the lane again, if nothing happens to it before.
local function setAlarm(lane, level, catchesUp)
  local at = math.min(promotesAt(lane, level), lane.lookAgainAt or huge, catchesUp or huge)
  lane.lookAgainAt = nil
  setScore(unsavedAlarms, lane, at < huge and at)
end

local function scoreOf(level, turn)
  return level * levelSpan + turn
end

local noteEmptied

do
-- By queue: lanes that have emptied, and leave the set of their queue's lanes with one call.
local emptiedLanes = {}

function saveEmptied()
  for name, keys in pairs(emptiedLanes) do callWithAll('SREM', prefix .. 'lanes:' .. name, keys) end
  emptiedLanes = {}
end

function noteEmptied(lane)
  local name = lane.queue.name
  if not emptiedLanes[name] then emptiedLanes[name] = {} end
  append(emptiedLanes[name], lane.key)
end
end

-- Only a take knows the head of a wildcard lane: for others it may be as urgent as can be.
function wild.open(lane)
  if not headOfMembers then
    lowerTo(soonerIndex, lane, scoreOf(0, lane.queue.turn))
    unpark(lane)
    return
  end
  local head = headOf(lane)
  if not head then return leaveSource(lane) end
  local level = levelOf(head)
  setScore(unsavedIndex, lane, scoreOf(level, lane.queue.turn))
  setAlarm(lane, level)
  unpark(lane)
end

local openLane

do
-- A take makes heads younger: of a lane that stays at its level, the alarm that it has is too early at worst. It is set
-- anew when it rings, not with each task.
local function keepsAlarm(lane, level)
  return not opensSooner and not lane.isReopened and not lane.lookAgainAt and lane.storedScore
    and math.floor(lane.storedScore / levelSpan) == level
end

-- To be called when a lane's heads have changed, or when it may have opened.
function openLane(lane)
  if lane.isWildcard then return wild.open(lane) end
  local head = headOf(lane)
  if head then
    local level = levelOf(head)
    setScore(unsavedIndex, lane, scoreOf(level, lane.queue.turn))
    if not keepsAlarm(lane, level) then setAlarm(lane, level) end
    unpark(lane)
  else
    leaveSource(lane)
    noteEmptied(lane)
  end
  if lane.hasNewHead then noteOpened(lane, opensSooner) end
end
end

local function parkLane(lane, untilMs)
  local queue, level = lane.queue, levelOf(headOf(lane))
  -- The head waits, but another one may not have to.
  local catchesUp = catchesUpAt(lane, level)
  if lane.hasNewHead or lane.isReopened or lane.lookAgainAt or catchesUp < huge then
    setAlarm(lane, level, catchesUp)
  end
  local isNew = call('ZADD', prefix .. 'parked:' .. lane.source, untilMs < huge and untilMs or '+inf',
    lane.key) == 1
  -- An offer may have put a parked wildcard lane back into the index.
  if not lane.wasParked or lane.isWildcard then setScore(unsavedIndex, lane, false) end
  if isNew then
    call('SADD', prefix .. 'parked-of:' .. queue.name, lane.key)
    queue.parked = queue.parked + 1
    queue.isChanged = true
  end
end

-- All that is parked now; what is parked from now on is not of it.
local function reopenLater(name)
  if call('EXISTS', prefix .. 'parked-of:' .. name) == 0 then return end
  call('RENAME', prefix .. 'parked-of:' .. name, prefix .. 'reopening-of:' .. name)
  call('SADD', prefix .. 'reopening', name)
  if not meta.isReopening then call('HSET', metaKey, 'reopening', 1) end
  meta.isReopening = true
end

-- Parked lanes that one script opens, of all queues together.
wild.reopenLeft = 70

-- They are parked until they are opened. Answers also whether these are all.
function wild.popReopened(name)
  local most = math.min(wild.reopenLeft, math.max(1, math.floor(stepsLeft / (price.lane * wild.maxNarrow))))
  if most == 0 then return {}, false end
  local keys = call('SPOP', prefix .. 'reopening-of:' .. name, most)
  wild.reopenLeft = wild.reopenLeft - #keys
  callWithAll('SADD', prefix .. 'parked-of:' .. name, keys)
  return keys, #keys < most
end

-- Lanes of a queue that has opened, to be reopened now; the rest of many is left to later takes.
local function parkedToOpen(queue)
  local name = queue.name
  local parkedKey, laterKey = prefix .. 'parked-of:' .. name, prefix .. 'reopening-of:' .. name
  if queue.parked <= wild.reopenLeft then
    wild.reopenLeft = wild.reopenLeft - queue.parked
    local keys = call('SMEMBERS', parkedKey)
    if meta.isReopening then append(keys, unpack(call('SMEMBERS', laterKey))) end
    return keys
  end
  if call('SISMEMBER', prefix .. 'reopening', name) == 1 then
    call('SADD', prefix .. 'reopening-again', name)
  else
    reopenLater(name)
  end
  return (wild.popReopened(name))
end

local function openParkedLanes(queue)
  if queue.parked == 0 then return end
  local keys = parkedToOpen(queue)
  stepsLeft = stepsLeft - #keys * (price.lane + price.movedLane)
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do openLane(loadLane(key)) end
end

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
