import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { lines } from './lines.js';
import { sources } from './sources.js';
import { wakes } from './wakes.js';
import { windows } from './windows.js';
import { queues } from './queues.js';

/**
 * Windows come first and are named by their number, so that each is looked at once. What is read from
 * a line comes with the round of its feed and the position where the line goes on.
 */
const request = String.raw`
local windowCount = tonumber(ARGV[2])
local firstWindow, windowArguments = 3, 5
local firstOffer, offerArguments = firstWindow + windowCount * windowArguments, 6

if not isOfThisRun() then return { 'rebuild' } end

local windows = {}
for number = 1, windowCount do
  local at = firstWindow + (number - 1) * windowArguments
  local laneKey, rank = ARGV[at], tonumber(ARGV[at + 1])
  local lane = loadLane(laneKey)
  local key = windowKey(rank, laneKey)
  local size = lane.queue[rank] == 0 and 0 or call('ZCARD', key)
  windows[number] = {
    lane = lane, rank = rank, key = key, size = size, wasEmpty = size == 0, added = {},
    field = rank .. laneKey,
    round = ARGV[at + 2], nextAt = tonumber(ARGV[at + 3]), nextSeq = tonumber(ARGV[at + 4]),
  }
end
loadLines(windows)
for _, window in ipairs(windows) do
  window.isFed = window.line and window.line.round == window.round
end

local isHeld = {}
local ids = argumentsFrom(firstOffer, offerArguments)
for index, record in ipairs(readRecords(ids)) do isHeld[ids[index]] = record and true end
`;

const accepting = String.raw`
local records = {}

local function write(window)
  if #window.added == 0 then return end
  if not window.isWritten then
    window.formerHead = not window.wasEmpty and call('ZRANGE', window.key, 0, 0)[1]
    window.isWritten = true
  end
  callWithAll('ZADD', window.key, window.added)
  window.added = {}
end

local function accept(window, taskId, age, orderedAt, seq, cost)
  local queue, rank = window.lane.queue, window.rank
  local eligibleAt = whole(now - age)
  if queue.turn == 0 then queue.turn = nextNumber() end
  queue[rank] = queue[rank] + 1
  queue.isChanged = true
  window.size = window.size + 1
  local added = window.added
  added[#added + 1] = orderedAt
  added[#added + 1] = memberOf(seq, taskId, eligibleAt)
  records[#records + 1] = taskId
  records[#records + 1] = waitingRecord(rank, orderedAt, seq, eligibleAt, window.lane.key, cost)
  isHeld[taskId] = true
end

-- The youngest of a full window makes room for one that is older. What was accepted before is
-- written first: it may be the youngest.
local function pushOut(window, at, seq)
  local queue, rank = window.lane.queue, window.rank
  write(window)
  local youngest = call('ZREVRANGE', window.key, 0, 0, 'WITHSCORES')
  if not youngest[1] then return false end
  local member, youngestAt = youngest[1], tonumber(youngest[2])
  local youngestSeq, taskId = tonumber(sub(member, 1, 16)), sub(member, 17, 52)
  if not isBefore(at, seq, youngestAt, youngestSeq) then return false end
  if not window.isWritten then
    window.formerHead = call('ZRANGE', window.key, 0, 0)[1]
    window.isWritten = true
  end
  callWithAll('HSET', entriesKey, records)
  records = {}
  call('ZREM', window.key, member)
  call('HDEL', entriesKey, taskId)
  isHeld[taskId] = nil
  window.size, queue[rank] = window.size - 1, queue[rank] - 1
  if queue.short == taskId then queue.short, queue.lostShort = '', true end
  leave(window, youngestAt, youngestSeq)
  return true
end

local function isAccepted(window, at, seq)
  local hasRoom = window.size < window.lane.queue.settings.maxReady
  if window.isFed then return hasRoom end
  local line = window.line
  if line and not isBefore(at, seq, line.at, line.seq) then return false end
  return hasRoom or pushOut(window, at, seq)
end
`;

const body = String.raw`
local outcomes = {}
for at = firstOffer, #ARGV, offerArguments do
  local taskId, window, orderedAt, seq = ARGV[at], windows[tonumber(ARGV[at + 1])], ARGV[at + 3], ARGV[at + 4]
  local outcome = 'accepted'
  if isHeld[taskId] then
    outcome = 'held'
  elseif isAccepted(window, tonumber(orderedAt), tonumber(seq)) then
    accept(window, taskId, ARGV[at + 2], orderedAt, seq, ARGV[at + 5])
  else
    leave(window, tonumber(orderedAt), tonumber(seq))
    outcome = 'left'
  end
  outcomes[#outcomes + 1] = outcome
end

local function enterSource(lane)
  if call('SADD', prefix .. 'lanes:' .. lane.queue.name, lane.key) == 1 then
    registerSource(lane.source)
  end
end

for _, window in ipairs(windows) do
  write(window)
  if window.isWritten then
    if window.wasEmpty then enterSource(window.lane) end
    if call('ZRANGE', window.key, 0, 0)[1] ~= window.formerHead then window.lane.hasNewHead = true end
  end
  if window.isFed then feedUpTo(window, window.nextAt, window.nextSeq) end
end
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
saveLines(windows)
saveQueues()
saveMeta()
return { 'offered', outcomes, wakes }
`;

export const offer = script(
  'offer',
  ...[base, queues, ageing, windows, sources, entries, buckets, wakes, lines],
  ...[request, accepting, body],
);
