-- Queues: settings, turn, slots and counts. Loaded once in a script, written back at its end, all of
-- them with one call: tasks of as many queues would else cost a call each, and to call costs more than
-- what is done for it.
--
-- `states` has a packed record of each, `settings` those that were configured, `idle` those that hold
-- nothing and would be made again just as they are, but for their turn and version, oldest first.
local defaultSettings = {
  isDefault = true,
  class = '',
  limits = {},
  limitCount = 0,
  sharedCount = 0,
  maxReady = constant.maxReady,
  maxConcurrency = huge,
  pausedUntil = -huge,
  lowToMedium = constant.lowToMedium,
  lowToHigh = constant.lowToHigh,
  mediumToHigh = constant.mediumToHigh,
}
local statesKey = prefix .. 'states'
local settingsKey = prefix .. 'settings'
local idleKey = prefix .. 'idle'
-- Whether it has settings, turn, probes left, slots, running, parked, and waiting entries by rank.
local stateFormat = '<Bddiiiiii'
local blankState = struct.pack(stateFormat, 0, 0, huge, 0, 0, 0, 0, 0, 0)
local queues = {}

local function waitingIn(queue)
  return queue[0] + queue[1] + queue[2]
end

local function isIdle(queue)
  return queue.settings.isDefault and queue.slots == 0 and waitingIn(queue) == 0
end

-- [0], [1] and [2] are its waiting entries by rank. A table that outgrows its fields is built anew, which
-- costs as much as to make it: those that a take adds are there from the beginning.
local function parseQueue(name, state)
  local hasSettings, turn, probesLeft, slots, running, parked, high, medium, low, rest =
    struct.unpack(stateFormat, state or blankState)
  local queue = {
    medium,
    low,
    -- In the walk of a take: its groups by level, from 3 on.
    false,
    false,
    false,
    [0] = high,
    name = name,
    isChanged = false,
    settings = defaultSettings,
    hasLimits = false,
    wasIdle = false,
    turn = turn,
    probesLeft = probesLeft,
    slots = slots,
    running = running,
    parked = parked,
    short = state and sub(state, rest) or '',
    grantRecord = false,
  }
  return queue, hasSettings == 1
end

local function packQueue(queue)
  local hasSettings = queue.settings == defaultSettings and 0 or 1
  return struct.pack(stateFormat, hasSettings, queue.turn, queue.probesLeft, queue.slots,
    queue.running, queue.parked, queue[0], queue[1], queue[2]) .. queue.short
end

local loadQueues

do
local function readSettings(names)
  stepsLeft = stepsLeft - #names * price.settings
  for index, packed in ipairs(readFields(settingsKey, names)) do
    local queue = queues[names[index]]
    queue.settings = cmsgpack.unpack(packed)
    queue.hasLimits = queue.settings.limitCount > 0
    queue.wasIdle = isIdle(queue)
  end
end

-- Whoever needs many says so first: they are read together.
function loadQueues(names)
  local new, configured = {}, {}
  for _, name in ipairs(names) do
    if queues[name] == nil then
      queues[name] = false
      new[#new + 1] = name
    end
  end
  for index, state in ipairs(readFields(statesKey, new)) do
    local name = new[index]
    local queue, hasSettings = parseQueue(name, state)
    queues[name] = queue
    if hasSettings then
      configured[#configured + 1] = name
    else
      queue.wasIdle = state and isIdle(queue)
    end
  end
  readSettings(configured)
end
end

local function loadQueue(name)
  if not queues[name] then loadQueues({ name }) end
  return queues[name]
end

-- They are packed by themselves: most scripts need none, and to unpack 20 costs as much as all else about a queue.
local function limitsIn(settings)
  if not settings.limits then settings.limits = cmsgpack.unpack(settings.packedLimits) end
  return settings.limits
end

-- How many more may be taken, as far as slots and probes go.
local function placesIn(queue)
  local free = queue.settings.maxConcurrency - queue.slots
  return queue.probesLeft < free and queue.probesLeft or free
end

local noteState, saveQueues

do
-- Idle queues past this many are forgotten, so many at once.
local maxIdle, forgottenAtOnce = 10000, 500

local function forgetOldIdle()
  local excess = call('ZCARD', idleKey) - maxIdle
  if excess <= 0 then return end
  local popped = call('ZPOPMIN', idleKey, math.min(excess, forgottenAtOnce) + forgottenAtOnce)
  local names = {}
  for index = 1, #popped, 2 do names[#names + 1] = popped[index] end
  callWithAll('HDEL', statesKey, names)
  callWithAll('HDEL', settingsKey, names)
end

local unsavedStates, newlyIdle = {}, {}

function noteState(name, packed, isNowIdle)
  local size = #unsavedStates
  unsavedStates[size + 1], unsavedStates[size + 2] = name, packed
  if isNowIdle then
    size = #newlyIdle
    newlyIdle[size + 1], newlyIdle[size + 2] = nextNumber(), name
  end
end

function saveQueues()
  local noLongerIdle = {}
  for name, queue in pairs(queues) do
    if queue.isChanged then
      local isNowIdle = isIdle(queue)
      noteState(name, packQueue(queue), isNowIdle)
      if queue.wasIdle and not isNowIdle then noLongerIdle[#noLongerIdle + 1] = name end
    end
  end
  callWithAll('HSET', statesKey, unsavedStates)
  callWithAll('ZREM', idleKey, noLongerIdle)
  callWithAll('ZADD', idleKey, newlyIdle)
  if #newlyIdle > 0 then forgetOldIdle() end
end
end
