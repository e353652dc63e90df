/**
 * The sources that lanes are taken from. A source is all lanes of one task type, one capability set
 * and one set of shared limits (its class): a worker can do all of them or none.
 *
 * - `lanes:` queue: its lanes that hold something.
 * - `index:` source: lanes that may be open, by level and turn. A turn can be too small, never too
 *   large, once its queue was served elsewhere: whoever finds it first corrects it.
 * - `parked:` source: lanes that are closed, by when to look again; `parked-of:` queue: the same lanes.
 * - `alarms:` source: when to look at a lane again, parked or not: its level changes by age, or the
 *   entry that stands in its way goes.
 * - `sources`: all sources, with lanes or without; `sources-of:` limit: those that share it.
 */
export const sources = String.raw`
local sourcesKey = prefix .. 'sources'
local maxSources = 10000
local levelSpan = 2 ^ 50
-- Sources that a lane is about to enter.
local isFilling = {}
-- By source and lane: scores that are to be written, or false. One call then writes those of many lanes.
local unsavedIndex, unsavedAlarms = {}, {}

local function setScore(unsaved, lane, score)
  local scores = unsaved[lane.source]
  if not scores then
    scores = {}
    unsaved[lane.source] = scores
  end
  scores[lane.key] = score
end

local function saveScores(unsaved, kind)
  for source, scores in pairs(unsaved) do
    local key, set, size, removed = prefix .. kind .. source, {}, 0, {}
    for laneKey, score in pairs(scores) do
      if score then
        set[size + 1], set[size + 2] = score, laneKey
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

local function saveSources()
  saveScores(unsavedIndex, 'index:')
  saveScores(unsavedAlarms, 'alarms:')
end

-- The names of the limits that the queues of a source share.
local function limitsOf(source)
  return string.gmatch(string.match(source, '^[^\n]*'), '[^\t]+')
end

local function pruneSources()
  local limit = tonumber(call('HGET', metaKey, 'prune-sources-at') or maxSources)
  if call('SCARD', sourcesKey) <= limit then return end
  saveSources()
  local empty = {}
  for _, source in ipairs(call('SMEMBERS', sourcesKey)) do
    local held = call('EXISTS', prefix .. 'index:' .. source, prefix .. 'parked:' .. source)
    if held == 0 and not isFilling[source] then
      empty[#empty + 1] = source
    end
  end
  callWithAll('SREM', sourcesKey, empty)
  for _, source in ipairs(empty) do
    for limit in limitsOf(source) do call('SREM', prefix .. 'sources-of:' .. limit, source) end
  end
  local twice = 2 * call('SCARD', sourcesKey)
  call('HSET', metaKey, 'prune-sources-at', math.max(maxSources, twice))
end

-- Sources stay when they are empty: one that fills and empties all the time is not news each time.
local function registerSource(source)
  if isFilling[source] then return end
  isFilling[source] = true
  if call('SADD', sourcesKey, source) == 0 then return end
  for limit in limitsOf(source) do call('SADD', prefix .. 'sources-of:' .. limit, source) end
  pruneSources()
  meta.sources = meta.generation .. '.' .. whole(nextNumber())
  call('HSET', metaKey, 'sources', meta.sources)
end

local function unpark(lane)
  local queue = lane.queue
  if queue.parked == 0 or call('ZREM', prefix .. 'parked:' .. lane.source, lane.key) == 0 then return end
  call('SREM', prefix .. 'parked-of:' .. queue.name, lane.key)
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

-- When to look at the lane again, if nothing happens to it before.
local function setAlarm(lane, level)
  local at = math.min(promotesAt(lane, level), lane.lookAgainAt or huge)
  lane.lookAgainAt = nil
  setScore(unsavedAlarms, lane, at < huge and at)
end

local function scoreOf(level, turn)
  return level * levelSpan + turn
end

-- To be called when a lane's heads have changed, or when it may have opened.
local function openLane(lane)
  local head = headOf(lane)
  if head then
    local level = levelOf(head)
    setScore(unsavedIndex, lane, scoreOf(level, lane.queue.turn))
    setAlarm(lane, level)
    unpark(lane)
  else
    leaveSource(lane)
    call('SREM', prefix .. 'lanes:' .. lane.queue.name, lane.key)
  end
end

local function parkLane(lane, untilMs)
  local queue = lane.queue
  if lane.hasNewHead or lane.isReopened or lane.lookAgainAt then
    setAlarm(lane, levelOf(headOf(lane)))
  end
  call('ZADD', prefix .. 'parked:' .. lane.source, untilMs < huge and untilMs or '+inf', lane.key)
  if lane.wasParked then return end
  setScore(unsavedIndex, lane, false)
  if call('SADD', prefix .. 'parked-of:' .. queue.name, lane.key) == 1 then
    queue.parked = queue.parked + 1
    queue.isChanged = true
  end
end

local function openParkedLanes(queue)
  if queue.parked == 0 then return end
  local keys = call('SMEMBERS', prefix .. 'parked-of:' .. queue.name)
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do openLane(loadLane(key)) end
end
`;
