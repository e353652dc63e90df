-- The beginning of a large take, as far as it is plain: one source, and first in it lanes of one level
-- whose queues have no settings. Nothing keeps such a lane from giving its head, and then its turn comes
-- after all others of its level. So each gives one, in the order of the index, without a look at the
-- rest, and without a table for each: with a task in each of many queues, those are most of what a walk
-- costs.
--
-- It ends before the first lane that is not plain or whose score is outdated, and has written all until
-- then: the walk begins there.
-- Of a small take, to read the index a second time would cost more.
local leastToSweep = 16
local sweepSource

do
local sweptLevel
local sweptStates, sweptWindows, sweptScores, sweptAlarms = {}, {}, {}, {}
local emptyFields, emptyLanes, joinedTails = {}, {}, {}
local parkedAt = 1 + struct.size('<Bddii')

-- Of a queue that is plain: the rank of all that waits in it, and how many those are. Nil: it is not.
local function rankOfPlain(state)
  if not state or #state > #blankState or byte(state) == 1 then return nil end
  local parked, high, medium, low = struct.unpack('<iiii', state, parkedAt)
  if parked > 0 then return nil end
  local waiting = high + medium + low
  local rank = high == waiting and 0 or medium == waiting and 1 or low == waiting and 2
  return rank or nil, waiting
end

local function packPlain(turn, slots, running, rank, waiting)
  return struct.pack(stateFormat, 0, turn, huge, slots, running, 0, rank == 0 and waiting or 0,
    rank == 1 and waiting or 0, rank == 2 and waiting or 0)
end

-- What is left of a window after its first has gone.
local function leaveRest(key, name, rank, field, text, turn)
  if #text == packedSize then
    append(emptyFields, field)
    append(emptyLanes, key)
    call('SREM', prefix .. 'lanes:' .. name, key)
    return
  end
  local eligibleAt = struct.unpack('<d', text, packedSize + 53)
  local level = levelAt(defaultSettings, rank, now - eligibleAt)
  local size = #sweptWindows
  sweptWindows[size + 1], sweptWindows[size + 2] = field, sub(text, packedSize + 1)
  sweptScores[size + 1], sweptScores[size + 2] = digits(scoreOf(level, turn)), key
  -- None is more urgent than high: the alarm of the level before is too early then, and does no harm.
  if level == 0 then return end
  size = #sweptAlarms
  sweptAlarms[size + 1] = digits(eligibleAt + ageFor(defaultSettings, rank, level - 1))
  sweptAlarms[size + 2] = key
end

-- False: it is not plain, and the sweep ends.
local function sweepLane(key, score, name, state, rank, waiting, field, text, tail)
  if not text or text == longMark then return false end
  local _, turn, _, slots, running = struct.unpack('<Bddii', state)
  local level = levelAt(defaultSettings, rank, now - struct.unpack('<d', text, 53))
  sweptLevel = sweptLevel or level
  if level ~= sweptLevel or score ~= scoreOf(level, turn) then return false end
  turn = nextNumber()
  noteGrant(sub(text, 17, 52), recordHead .. name .. recordTail, turn, key, rank, level)
  local size = #sweptStates
  sweptStates[size + 1] = name
  sweptStates[size + 2] = packPlain(turn, slots + 1, running, rank, waiting - 1)
  if tail then append(joinedTails, field) end
  leaveRest(key, name, rank, field, tail and text .. tail or text, turn)
  return true
end

-- By index: the tails of those that would else leave too little before them.
local function readShortTails(fields, texts, waiting)
  local tails, short, shortFields = {}, {}, {}
  for index, text in ipairs(texts) do
    local size = text and #text / packedSize or 0
    if size <= leastBeforeTail and waiting[index] > leastBeforeTail then
      short[#short + 1] = index
      shortFields[#short] = fields[index]
    end
  end
  for at, tail in ipairs(readFields(tailsKey, shortFields)) do tails[short[at]] = tail end
  return tails
end

-- So many lanes from there on. False: the sweep ends.
local function sweepStretch(indexKey, from, size)
  local found = call('ZRANGE', indexKey, from, from + size - 1, 'WITHSCORES')
  local names, fields, ranks, waiting = {}, {}, {}, {}
  for at = 1, #found, 2 do names[#names + 1] = queueNameOf(found[at]) end
  local states = readFields(statesKey, names)
  for index, state in ipairs(states) do
    local rank, count = rankOfPlain(state)
    if not rank then break end
    fields[index] = rankTexts[rank] .. found[2 * index - 1]
    ranks[index], waiting[index] = rank, count
  end
  local texts = readFields(windowsKey, fields)
  local tails = readShortTails(fields, texts, waiting)
  for index, text in ipairs(texts) do
    local key, score = found[2 * index - 1], tonumber(found[2 * index])
    local isSwept = sweepLane(key, score, names[index], states[index], ranks[index], waiting[index],
      fields[index], text, tails[index])
    if not isSwept then return false end
  end
  return #fields == size
end

local function saveSweep(indexKey, alarmsKey)
  callWithAll('HSET', statesKey, sweptStates)
  callWithAll('HSET', windowsKey, sweptWindows)
  callWithAll('HDEL', windowsKey, emptyFields)
  callWithAll('HDEL', tailsKey, joinedTails)
  callWithAll('ZADD', indexKey, sweptScores)
  callWithAll('ZREM', indexKey, emptyLanes)
  callWithAll('ZADD', alarmsKey, sweptAlarms)
  callWithAll('ZREM', alarmsKey, emptyLanes)
end

-- Only asked: those that are due are for the walk, and it looks at so many of them.
local function hasDue(key)
  return #call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 1) > 0
end

function sweepSource(source)
  local indexKey, alarmsKey = prefix .. 'index:' .. source, prefix .. 'alarms:' .. source
  if hasDue(prefix .. 'parked:' .. source) or hasDue(alarmsKey) then return end
  local from, size = 0, leastToSweep
  while grantedCount < count do
    size = math.min(size, count - grantedCount)
    if not sweepStretch(indexKey, from, size) then break end
    from, size = from + size, size * 4
  end
  if grantedCount > 0 then saveSweep(indexKey, alarmsKey) end
end
end
