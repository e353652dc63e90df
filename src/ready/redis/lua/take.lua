-- Looks at the first entry of each lane that the worker can do, best first, and grants those that
-- may go, until there are enough of them; then goes on to the one that would be next.
-- include: base routing-groups entries buckets heap

local maxSourcesTold = 1000
local version, count = ARGV[2], tonumber(ARGV[3])
-- For every type: by wildcard lanes, that are kept from the first such take on.
local isForAll = sub(ARGV[4], 1, 3) == 'all'
local isByName = sub(ARGV[4], -5) == 'named'
-- Names of queues, and then sources or, of queues that are named, routing groups.
local firstName = 6
local firstKey = firstName + tonumber(ARGV[5])

if not isOfThisRun() then return { 'rebuild' } end
stepsLeft = constant.stepsOfTake
opensSooner = false

do
-- Those that came since, or all of them: a stretch of them, and the version that it leads to.
local function newSources()
  local known, after = string.match(version, '^([^:]*):(.*)$')
  local present = string.match(meta.sources, '^[^:]*')
  local isSame = known == present
  local found = call('ZRANGEBYSCORE', sourcesKey, isSame and '(' .. after or '-inf', '+inf', 'WITHSCORES',
    'LIMIT', 0, maxSourcesTold)
  local keys = {}
  for index = 1, #found, 2 do keys[#keys + 1] = found[index] end
  local isLast = #keys < maxSourcesTold
  return { 'stale', isLast and meta.sources or present .. ':' .. found[#found], isSame and 1 or 0, keys }
end

-- For lanes that were there before the first take for every type: some at a time.
local function makeWildcards()
  local found = call('HSCAN', windowsKey, meta.wildcards or '0', 'COUNT', 100)
  local keys, isFound = {}, {}
  for index = 1, #found[2], 2 do
    local key = sub(found[2][index], 2)
    -- One is its mark.
    if key ~= '' and not isFound[key] then keys[#keys + 1] = key end
    isFound[key] = true
  end
  meta.wildcards = found[1] == '0' and 'all' or found[1]
  call('HSET', metaKey, 'wildcards', meta.wildcards)
  loadLanes(keys, 1)
  for _, key in ipairs(keys) do noteOpened(loadLane(key), true) end
  saveSources()
  saveQueues()
  saveMeta()
  return { 'stale', version, 1, {} }
end

if isForAll and meta.wildcards ~= 'all' then return makeWildcards() end
if version ~= meta.sources then return newSources() end
end

-- include: wildcard-heads walk gate

local grant = digits(meta.generation % constant.grantGenerations) .. '.' .. whole(nextNumber())
local records, order, granted = {}, {}, {}
local grantedCount = 0
-- Of all grants of a take, what stands before the name of the queue in a record, and what after it.
local blankRecord = outRecord('T', now, '', grant, '')
local recordHead, recordTail = sub(blankRecord, 1, outQueueAt - 1), sub(blankRecord, outQueueAt)

-- Of one queue and one take they differ in their cost alone.
local function recordOf(entry)
  local queue = entry.queue
  if not queue.grantRecord then
    queue.grantRecord = recordHead .. queue.name .. recordTail
  end
  return queue.grantRecord .. (entry.costText or '')
end

local function spendTokens(entry)
  for _, limit in ipairs(limitsIn(entry.queue.settings)) do
    local bucket = loadBucket(limit.bucket)
    spend(bucket, costInBucket(entry, bucket), grant)
  end
end

local function noteGrant(taskId, record, turn, laneKey, rank, level)
  local at = 2 * grantedCount
  records[at + 1], records[at + 2] = taskId, record
  order[at + 1], order[at + 2] = digits(turn), taskId
  granted[2 * at + 1], granted[2 * at + 2] = taskId, laneKey
  granted[2 * at + 3], granted[2 * at + 4] = rank, level
  grantedCount = grantedCount + 1
  wanted = wanted - 1
  stepsLeft = stepsLeft - price.grant
end

local function grantEntry(entry)
  local queue, taskId = entry.queue, entry.taskId
  local level = levelOf(entry)
  queue.turn = nextNumber()
  queue.slots, queue.probesLeft = queue.slots + 1, queue.probesLeft - 1
  if queue.hasLimits then spendTokens(entry) end
  takeFromWindow(entry)
  entry.lane.hasNewHead = true
  if entry.lane.wildcard then entry.lane.wildcard.hasNewHead = true end
  if queue.short == taskId then setShort(queue, '') end
  noteGrant(taskId, recordOf(entry), queue.turn, entry.lane.key, entry.rank, level)
end

local function saveGrants()
  saveWindows()
  callWithAll('HSET', entriesKey, records)
  callWithAll('ZADD', outKey, order)
end

-- include: sweep

local waitMs

do
local correctionsLeft = 50

-- When the first parked lane opens. Stored times can be too early: tokens went elsewhere since. What is
-- left too early makes a take in vain. A wildcard lane may be open to a head that came since: then it waits
-- for what its class is blocked by, and is parked no longer.
local function firstOpening(source)
  local key = prefix .. 'parked:' .. source
  while true do
    local top = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local parkedUntil = tonumber(top[2] or huge)
    if parkedUntil == huge then return huge end
    -- Too early at worst: then the next take looks at it.
    if stepsLeft <= 0 then return parkedUntil end
    stepsLeft = stepsLeft - price.source
    local lane = loadLane(top[1])
    local head = headOf(lane)
    local at = head and opensAt(head) or huge
    local isBlocked = at <= now and blocked[lane.queue.settings.class]
    if at <= parkedUntil and not isBlocked or correctionsLeft == 0 then return at end
    correctionsLeft = correctionsLeft - 1
    if isBlocked then openLane(lane) else call('ZADD', key, at < huge and at or '+inf', top[1]) end
  end
end

-- Until something of what was looked at can be taken; empty: not before something happens. Of a take that was cut short:
-- of what the next script leaves out.
function waitMs()
  local first = huge
  for _, entry in pairs(blocked) do first = math.min(first, tokensAt(entry, true)) end
  for source in pairs(isAskedSource) do
    local isIncluded = not isCutShort or blocked[string.match(source, '^[^\n]*')]
    if isIncluded then first = math.min(first, firstOpening(source)) end
  end
  saveSources()
  for _, lane in pairs(lanes) do
    if lane.isNamed and lane.parkedUntil then first = math.min(first, opensAt(headOf(lane))) end
  end
  return first < huge and math.max(0, first - now) or ''
end
end

-- Looks at the best entry that is left, again and again, until enough were granted and one more
-- could be: answers with the lane of that one, or nil when all that is left has to wait.
local function grantUntilNext()
  while true do
    local lane = nextInWalk()
    if not lane then return nil end
    local class, entry = lane.queue.settings.class, headOf(lane)
    entry.walked = lane
    local opens = examine(entry)
    if opens > now then
      parkInWalk(lane, opens)
    elseif class ~= '' and tokensAt(entry, true) > now then
      blocked[class] = entry
    elseif grantedCount == count then
      return lane
    else
      grantEntry(entry)
      enterWalk(lane)
    end
  end
end

wanted = count + 1
if meta.isReopening then reopenSome() end
local maySweep = not isByName and not meta.wildcards and firstKey == #ARGV
if maySweep and count >= leastToSweep then sweepSource(ARGV[firstKey]) end
local entered = (isByName and walkOverNamed or walkOverSources)()
local nextLane = grantUntilNext()
saveWalk()
local wait = nextLane and 0 or isCutShort and not leftOut and 0 or waitMs()
-- For the next script of the same take: how many of those it was asked for it looked at, and what to leave out.
local rest = { entered or -1, isCutShort and wait or '', unpack(leftOut or {}) }
if isCutShort then wait = 0 end
saveGrants()
saveBuckets()
saveQueues()
saveMeta()
if grantedCount == 0 then return { 'wait', wait, rest } end
return { 'taken', meta.generation, grant, nextLane and headOf(nextLane).lane.key or '', wait, granted, rest }
