-- Takes into their windows what has a place in line.
-- include: base packed-states wakes entries left-lines

-- Windows come first and are named by their number, so that each is looked at once. Of those that are
-- fed from a line, the round of the feed follows and the position where the line goes on. Then come the ids,
-- and a text for each: insert order, number of its window, age, when it became eligible by the clock of
-- the line, and cost.
local windowCount, fedCount = tonumber(ARGV[2]), tonumber(ARGV[3])
local beforeWindows, fedArguments = 3, 3
local firstFed = beforeWindows + windowCount + 1
local beforeIds = firstFed + fedCount * fedArguments - 1
local offerCount = (#ARGV - beforeIds) / 2
local beforeTexts = beforeIds + offerCount
local offerPattern = '^(%d+) (%d+) (%S+) (%S+) (.*)$'

if not isOfThisRun() then return { 'rebuild' } end

local function fieldOf(number)
  return ARGV[beforeWindows + number]
end

local function readForWindows(key)
  return readFields(key, ARGV, beforeWindows + 1, beforeWindows + windowCount)
end

local names, numberOf = {}, {}
for number = 1, windowCount do
  local field = fieldOf(number)
  local name = sub(field, 2, find(field, '\n', 2, true) - 1)
  names[number] = name
  numberOf[name] = numberOf[name] == nil and number
end
local states = readFields(statesKey, names)
-- One is its mark.
local lineRecords = call('HLEN', leftKey) > 1 and readForWindows(leftKey) or {}

local function rankOf(number)
  return byte(fieldOf(number)) - 48
end

-- Of a plain window, by number: its tail, or all of it when it has none.
local lastParts, isTail = {}, {}

do
-- A window is plain if it is short, holds something, and nothing was left of it, and its queue has no
-- settings and no other window here. What comes behind its last is only joined to it: its lane stays
-- where it is. No tables are made of it, as long as it is plain.
local function mayBePlain(number)
  local state = states[number]
  return state and byte(state) == 0 and not lineRecords[number] and numberOf[names[number]] == number
end

local function readLastParts(key, numbers)
  local fields = {}
  for index, number in ipairs(numbers) do fields[index] = fieldOf(number) end
  for index, part in ipairs(readFields(key, fields)) do
    if part ~= longMark then lastParts[numbers[index]] = part end
  end
end

local tailed, untailed = {}, {}
for number = 1, windowCount do
  if mayBePlain(number) then
    local list = waitingOfState(states[number], rankOf(number)) > leastBeforeTail and tailed or untailed
    list[#list + 1] = number
  end
end
readLastParts(tailsKey, tailed)
for _, number in ipairs(tailed) do
  if lastParts[number] then isTail[number] = true else untailed[#untailed + 1] = number end
end
readLastParts(windowsKey, untailed)
end

-- All others cost a table and several writes each: too many of them are offered in parts.
do
local cost = 0
for number = 1, windowCount do
  local hasCapabilities = sub(fieldOf(number), -1) ~= '\n'
  if not lastParts[number] then cost = cost + (hasCapabilities and 2 or 1) end
end
if windowCount > 1 and cost > constant.windowsAtOnce then return { 'split' } end
end

-- Those others, by number and in a list.
local windows, opened = {}, {}

local function openWindow(number)
  local field, record = fieldOf(number), lineRecords[number]
  local window = needWindow(loadLane(sub(field, 2)), tonumber(sub(field, 1, 1)))
  window.line = record and parseLine(record)
  if record and number <= fedCount then
    local at = firstFed + (number - 1) * fedArguments
    window.isFed = window.line.round == ARGV[at]
    window.nextAt, window.nextSeq = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  end
  windows[number] = window
  opened[#opened + 1] = window
end

-- After it was read.
local function noteHead(window)
  if not window.isLong then window.formerHead = sub(window.text, 1, memberSize) end
end

do
local laneKeys = {}
for number = 1, windowCount do
  if not lastParts[number] then laneKeys[#laneKeys + 1] = sub(fieldOf(number), 2) end
end
findLanes(laneKeys, 1, #laneKeys, 1)
end
for number = 1, windowCount do
  if not lastParts[number] then openWindow(number) end
end
readWindows()
for _, window in ipairs(opened) do noteHead(window) end

-- A lane that was empty may enter a new source, with an entry for each limit that it shares.
do
local cost = 0
for _, window in ipairs(opened) do
  local sharedCount = window.formerHead == '' and window.lane.queue.settings.sharedCount or 0
  cost = cost + price.newSource * sharedCount
end
-- Steps for the limits that new sources share.
local mostForSources = 7000
if windowCount > 1 and cost > mostForSources then return { 'split' } end
end

local isHeld = {}
for index, record in ipairs(readRecords(ARGV, beforeIds + 1, beforeTexts)) do
  if record then isHeld[ARGV[beforeIds + index]] = true end
end

local records = {}

local comesBehind, addToWindow

do
local function makeLong(window)
  local text, added = window.text, {}
  for size = 0, #text - 1, packedSize do
    added[#added + 1] = (struct.unpack('<d', text, size + memberSize + 1))
    added[#added + 1] = sub(text, size + 1, size + memberSize)
  end
  becomeLong(window)
  window.added = added
end

-- Whether an entry comes behind the one that ends there in a short window. All insert orders have as many
-- digits.
function comesBehind(text, last, at, packed)
  local otherAt = struct.unpack('<d', text, last - 7)
  if at ~= otherAt then return at > otherAt end
  local first = last - packedSize + 1
  return sub(packed, 1, 16) > sub(text, first, first + 15)
end

-- After so many bytes of a short window stands the first that is younger.
local function sizeBefore(text, at, packed)
  local size = #text
  while size > 0 and not comesBehind(text, size, at, packed) do size = size - packedSize end
  return size
end

function addToWindow(window, packed, at)
  touch(window)
  if not window.isLong and #window.text >= maxShortSize then makeLong(window) end
  if window.isLong then
    local added = window.added
    added[#added + 1] = at
    added[#added + 1] = sub(packed, 1, memberSize)
    return
  end
  local text = window.text
  local size = sizeBefore(text, at, packed)
  if size == #text then
    window.text = text .. packed
  else
    window.text = sub(text, 1, size) .. packed .. sub(text, size + 1)
  end
end
end

local function noteRecord(taskId, field, packed, cost)
  local size = #records
  records[size + 1], records[size + 2] = taskId, waitingRecord(field, packed, cost)
  isHeld[taskId] = true
end

local function accept(window, taskId, packed, at, cost)
  local queue, rank = window.lane.queue, window.rank
  if queue.turn == 0 then queue.turn = nextNumber() end
  queue[rank] = queue[rank] + 1
  queue.isChanged = true
  addToWindow(window, packed, at)
  noteRecord(taskId, window.field, packed, cost)
end

-- By number: what is joined to a plain window.
local joined = {}

-- False: it would not be plain with it.
local function joinToPlain(number, taskId, packed, at, cost)
  local before = joined[number]
  local last = before or lastParts[number]
  if #last >= maxShortSize / 2 or not comesBehind(last, #last, at, packed) then return false end
  joined[number] = before and before .. packed or packed
  noteRecord(taskId, fieldOf(number), packed, cost)
  return true
end

-- With what was joined to it.
local function openPlain(number)
  openWindow(number)
  readWindows()
  local window, text = windows[number], joined[number]
  noteHead(window)
  if not text then return end
  local queue = window.lane.queue
  queue[window.rank] = queue[window.rank] + #text / packedSize
  queue.isChanged = true
  window.text = window.text .. text
  touch(window)
  joined[number] = nil
end

local function saveJoined()
  local heads, tails = {}, {}
  for number, text in pairs(joined) do
    local part = lastParts[number]
    local beginsTail = not isTail[number] and #part >= headSize
    local parts = (beginsTail or isTail[number]) and tails or heads
    local size = #parts
    parts[size + 1], parts[size + 2] = fieldOf(number), beginsTail and text or part .. text
    local state = addToState(states[number], 0, 0, #text / packedSize, rankOf(number))
    noteState(names[number], state, false)
  end
  callWithAll('HSET', windowsKey, heads)
  callWithAll('HSET', tailsKey, tails)
end

local pushOut

do
-- Nil: it is empty. What was accepted before is written first: it may be the youngest.
local function youngestOf(window)
  if window.isLong then
    callWithAll('ZADD', window.key, window.added)
    window.added, window.isWritten = {}, true
    local found = call('ZREVRANGE', window.key, 0, 0, 'WITHSCORES')
    return found[1], tonumber(found[2])
  end
  local size = #window.text - packedSize
  if size < 0 then return nil end
  return sub(window.text, size + 1, size + memberSize),
    (struct.unpack('<d', window.text, size + memberSize + 1))
end

local function dropYoungest(window, member)
  touch(window)
  if window.isLong then
    call('ZREM', window.key, member)
  else
    window.text = sub(window.text, 1, #window.text - packedSize)
  end
end

-- The youngest of a full window makes room for one that is older.
function pushOut(window, at, seq)
  local queue, rank = window.lane.queue, window.rank
  local member, youngestAt = youngestOf(window)
  if not member then return false end
  local youngestSeq, taskId = tonumber(sub(member, 1, 16)), sub(member, 17, 52)
  if not isBefore(at, seq, youngestAt, youngestSeq) then return false end
  stepsLeft = stepsLeft - price.pushedOut
  callWithAll('HSET', entriesKey, records)
  records = {}
  dropYoungest(window, member)
  call('HDEL', entriesKey, taskId)
  isHeld[taskId] = nil
  queue[rank] = queue[rank] - 1
  if queue.short == taskId then
    queue.short, queue.lostShort = '', true
    -- They are needed to wake somebody.
    knowsItsLimits(queue)
  end
  leave(window, youngestAt, youngestSeq)
  return true
end
end

-- Its queue has as many entries of its rank, or more: mostly that says enough.
local function hasRoomIn(window)
  local queue = window.lane.queue
  local maxReady = queue.settings.maxReady
  return queue[window.rank] < maxReady or sizeOf(window) < maxReady
end

local function isAccepted(window, at, seq)
  if window.isFed then return hasRoomIn(window) end
  local line = window.line
  if line and not isBefore(at, seq, line.at, line.seq) then return false end
  return hasRoomIn(window) or pushOut(window, at, seq)
end

-- Of those that were not accepted; how many were looked at, from the first on.
local outcomes, done = {}, offerCount

do
-- Whether the rest is for the next script. What is fed pushes nothing out: a stretch of a line is never cut.
local function isEnough(text)
  if stepsLeft > 0 then return false end
  local window = windows[tonumber(string.match(text, '^%d+ (%d+)'))]
  return not (window and window.isFed)
end

-- Answers with 'accepted', 'held' or 'left'.
local function offer(taskId, text)
  if isHeld[taskId] then return 'held' end
  local seqText, numberText, ageMs, atText, cost = string.match(text, offerPattern)
  local number, at = tonumber(numberText), tonumber(atText)
  local packed = seqText .. taskId .. struct.pack('<dd', now - ageMs, at)
  if not windows[number] then
    if joinToPlain(number, taskId, packed, at, cost) then return 'accepted' end
    openPlain(number)
  end
  local window, seq = windows[number], tonumber(seqText)
  if not isAccepted(window, at, seq) then
    leave(window, at, seq)
    return 'left'
  end
  accept(window, taskId, packed, at, cost)
  return 'accepted'
end

for index = 1, offerCount do
  if index > 1 and isEnough(ARGV[beforeTexts + index]) then
    done = index - 1
    break
  end
  local outcome = offer(ARGV[beforeIds + index], ARGV[beforeTexts + index])
  if outcome ~= 'accepted' then append(outcomes, index, outcome) end
end

-- Lines of which something is left to the next script are not fed yet.
for index = done + 1, offerCount do
  local window = windows[tonumber(string.match(ARGV[beforeTexts + index], '^%d+ (%d+)'))]
  if window then window.isFed = false end
end
end

local enterSource, saveFilled

do
-- By queue: lanes that hold something now, and may not have before.
local filledLanes = {}

function enterSource(lane)
  local name = lane.queue.name
  if not filledLanes[name] then filledLanes[name] = {} end
  append(filledLanes[name], lane.key)
  registerSource(lane.source)
end

function saveFilled()
  for name, keys in pairs(filledLanes) do callWithAll('SADD', prefix .. 'lanes:' .. name, keys) end
end
end

-- Of one that was long before, the head is not known: it is new if it was added.
local function hasNewHead(window)
  if not window.isLong then return sub(window.text, 1, memberSize) ~= window.formerHead end
  if window.formerHead or window.isWritten then return true end
  local head = call('ZRANGE', window.key, 0, 0)[1]
  local added = window.added
  for index = 2, #added, 2 do
    if added[index] == head then return true end
  end
  return false
end

saveWindows()
saveJoined()
for _, window in ipairs(opened) do
  if window.isChanged then
    if window.formerHead == '' then enterSource(window.lane) end
    if hasNewHead(window) then window.lane.hasNewHead = true end
  end
  if window.isFed then feedUpTo(window, window.nextAt, window.nextSeq) end
end
saveFilled()
for _, lane in pairs(lanes) do
  if lane.hasNewHead then openLane(lane) end
end
for _, queue in pairs(queues) do
  if queue.lostShort then
    openParkedLanes(queue)
    wakeQueue(queue)
  end
end
callWithAll('HSET', entriesKey, records)
saveSources()
saveLines(opened)
saveQueues()
saveMeta()
return { 'offered', outcomes, wakes, done }
