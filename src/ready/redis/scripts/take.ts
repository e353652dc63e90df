import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { gate } from './gate.js';
import { sources } from './sources.js';
import { windows } from './windows.js';
import { queues } from './queues.js';

const request = String.raw`
local version = ARGV[2]
local count = tonumber(ARGV[3])
local isByName = ARGV[4] == 'named'
local firstName = 6
local firstKey = firstName + tonumber(ARGV[5])

if not isOfThisRun() then return { 'rebuild' } end
if version ~= meta.sources then
  return { 'stale', meta.sources, call('SMEMBERS', sourcesKey) }
end
`;

/**
 * What the request may be given from: sources, each with the lane whose turn it is. A request that
 * names queues looks at their lanes one by one, as if each were a source.
 */
const candidates = String.raw`
local sources = {}
-- By class: the entry that waits for the tokens its queue shares. Nothing behind it is granted.
local blocked = {}
local timed = { 'parked:', 'alarms:' }

-- Levels and openings that changed by time alone. So many at once: a script must be short, and the
-- rest has its turn with the next take.
local function catchUp(source)
  for _, kind in ipairs(timed) do
    local due = call('ZRANGEBYSCORE', prefix .. kind .. source, '-inf', now, 'LIMIT', 0, 1000)
    for _, key in ipairs(due) do openLane(loadLane(key)) end
  end
end

local function addSources()
  for index = firstKey, #ARGV do
    local key = ARGV[index]
    catchUp(key)
    moved[key] = true
    sources[#sources + 1] = { key = key, class = string.match(key, '^[^\n]*') }
  end
end

local function addNamedLanes()
  local isWanted = {}
  for index = firstKey, #ARGV do isWanted[ARGV[index]] = true end
  for index = firstName, firstKey - 1 do
    for _, key in ipairs(call('SMEMBERS', prefix .. 'lanes:' .. ARGV[index])) do
      local lane = loadLane(key)
      if isWanted[lane.group] then
        lane.hasMoved = true
        sources[#sources + 1] = { class = lane.queue.settings.class, named = lane }
      end
    end
  end
end

local function scoreNow(lane)
  local head = headOf(lane)
  return head and scoreOf(levelOf(head), lane.queue.turn)
end

local function lookAtNamed(source)
  local lane = source.named
  lane.hasMoved = false
  source.score = not lane.isParked and scoreNow(lane)
  source.lane = source.score and lane
  source.trueAtTurn = lane.queue.turn
end

-- Finds the lane whose turn it is, and how far its turn may go back before it is another's.
local function lookAtIndex(source)
  if source.lane and source.lane.isMisplaced then openLane(source.lane) end
  moved[source.key] = nil
  local top = call('ZRANGE', prefix .. 'index:' .. source.key, 0, 1, 'WITHSCORES')
  source.lane = top[1] and loadLane(top[1])
  source.score = tonumber(top[2])
  source.secondScore = tonumber(top[4] or huge)
  source.trueAtTurn = nil
end

local function look(source)
  if source.named then
    if source.named.hasMoved then lookAtNamed(source) end
  elseif moved[source.key] then
    lookAtIndex(source)
  end
end

-- Equal scores are of one queue: no two queues have the same turn.
local function comesBefore(a, b)
  if a.score ~= b.score then return a.score < b.score end
  return isOlder(headOf(a.lane), headOf(b.lane))
end

local function bestSource()
  local best
  for _, source in ipairs(sources) do
    look(source)
    if source.lane and not blocked[source.class] and (not best or comesBefore(source, best)) then
      best = source
    end
  end
  return best
end

-- After the lane's head or its queue's turn has changed. The index is written when it must be.
local function placeAnew(source)
  local lane = source.lane
  if source.named then
    lane.isMisplaced, lane.hasMoved = true, true
    return
  end
  local score = scoreNow(lane)
  if score and score <= source.secondScore then
    source.score, source.trueAtTurn = score, lane.queue.turn
    lane.isMisplaced = true
  else
    openLane(lane)
  end
end
`;

const granting = String.raw`
local grant = meta.generation .. '.' .. whole(nextNumber())
local since = whole(now)
local records, order, granted = {}, {}, {}
local grantedCount = 0

-- Of one queue and one take they differ in their cost alone.
local function recordOf(entry)
  local queue = entry.queue
  if not queue.grantRecord then
    queue.grantRecord = outRecord('T', queue.name, grant, since, '')
  end
  return queue.grantRecord .. (entry.costText or '')
end

local function spendTokens(entry)
  for _, limit in ipairs(entry.queue.settings.limits) do
    local bucket = loadBucket(limit.bucket)
    spend(bucket, costInBucket(entry, bucket), grant)
  end
end

local function grantEntry(entry)
  local queue, taskId = entry.queue, entry.taskId
  local level = levelOf(entry)
  queue.turn = nextNumber()
  queue.slots = queue.slots + 1
  if queue.hasLimits then spendTokens(entry) end
  takeFromWindow(entry)
  if queue.short == taskId then setShort(queue, '') end
  local at = 2 * grantedCount
  records[at + 1], records[at + 2] = taskId, recordOf(entry)
  order[at + 1], order[at + 2] = queue.turn, taskId
  granted[2 * at + 1], granted[2 * at + 2] = taskId, entry.lane.key
  granted[2 * at + 3], granted[2 * at + 4] = entry.rank, level
  grantedCount = grantedCount + 1
  wanted = wanted - 1
end

local function saveGrants()
  for _, lane in pairs(lanes) do
    for rank = 0, 2 do
      local window = lane[rank]
      if window and window.taken > 0 then
        call('ZREMRANGEBYRANK', window.key, 0, window.taken - 1)
      end
    end
    if lane.isMisplaced then openLane(lane) end
  end
  callWithAll('HSET', entriesKey, records)
  callWithAll('ZADD', outKey, order)
end
`;

const waiting = String.raw`
-- When the first parked lane opens. Stored times can be too early: tokens went elsewhere since.
local function firstOpening(source)
  if source.named then
    return source.named.isParked and opensAt(headOf(source.named)) or huge
  end
  local key = prefix .. 'parked:' .. source.key
  while true do
    local top = call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local parkedUntil = tonumber(top[2] or huge)
    if parkedUntil == huge then return huge end
    local at = opensAt(headOf(loadLane(top[1])))
    if at <= parkedUntil then return at end
    call('ZADD', key, at < huge and at or '+inf', top[1])
  end
end

-- Until something can be taken; empty: not before something happens.
local function waitMs()
  local first = huge
  for _, entry in pairs(blocked) do first = math.min(first, tokensAt(entry, true)) end
  for _, source in ipairs(sources) do first = math.min(first, firstOpening(source)) end
  return first < huge and math.max(0, first - now) or ''
end
`;

const body = String.raw`
-- Looks at the best entry that is left, again and again, until enough were granted and one more
-- could be: answers with the lane of that one, or nil when all that is left has to wait.
local function grantUntilNext()
  while true do
    local source = bestSource()
    if not source then return nil end
    local lane = source.lane
    if source.trueAtTurn ~= lane.queue.turn and source.score ~= scoreNow(lane) then
      placeAnew(source)
    else
      local entry = headOf(lane)
      local opens = examine(entry)
      if opens > now then
        parkLane(lane, opens)
      elseif source.class ~= '' and tokensAt(entry, true) > now then
        blocked[source.class] = entry
      elseif grantedCount == count then
        return lane
      else
        grantEntry(entry)
        placeAnew(source)
      end
    end
  end
end

wanted = count + 1
if isByName then addNamedLanes() else addSources() end
local nextLane = grantUntilNext()
local wait = nextLane and 0 or waitMs()
saveGrants()
saveBuckets()
saveQueues()
saveMeta()
if grantedCount == 0 then return { 'wait', wait } end
return { 'taken', meta.generation, grant, nextLane and nextLane.key or '', wait, granted }
`;

/**
 * Looks at the first entry of each lane that the worker can do, best first, and grants those that
 * may go, until there are enough of them; then goes on to the one that would be next.
 */
export const take = script(
  'take',
  ...[base, queues, ageing, windows, sources, entries, buckets, gate],
  ...[request, candidates, granting, waiting, body],
);
