import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { entries } from './entries.js';
import { sources } from './sources.js';
import { windows } from './windows.js';
import { queues } from './queues.js';

/** Windows come first and are named by their number, so that each is looked at once. */
const body = String.raw`
local windowCount = tonumber(ARGV[2])
local firstWindow, windowArguments = 3, 2
local firstOffer, offerArguments = firstWindow + windowCount * windowArguments, 6

if not isOfThisRun() then return { 'rebuild' } end

local windows = {}
for number = 1, windowCount do
  local at = firstWindow + (number - 1) * windowArguments
  local laneKey, rank = ARGV[at], tonumber(ARGV[at + 1])
  local lane = loadLane(laneKey)
  local key = windowKey(rank, laneKey)
  local size = lane.queue[rank] == 0 and 0 or call('ZCARD', key)
  windows[number] = { lane = lane, rank = rank, key = key, size = size, wasEmpty = size == 0, added = {} }
end

local isHeld = {}
local ids = argumentsFrom(firstOffer, offerArguments)
for index, record in ipairs(readRecords(ids)) do isHeld[ids[index]] = record and true end

local records = {}

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

local outcomes = {}
for at = firstOffer, #ARGV, offerArguments do
  local taskId, window, age = ARGV[at], windows[tonumber(ARGV[at + 1])], ARGV[at + 2]
  local outcome = 'accepted'
  if isHeld[taskId] then
    outcome = 'held'
  elseif window.size >= window.lane.queue.settings.maxReady then
    outcome = 'full'
  else
    accept(window, taskId, age, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
  end
  outcomes[#outcomes + 1] = outcome
end

local function enterSource(lane)
  if call('SADD', prefix .. 'lanes:' .. lane.queue.name, lane.key) == 1 then
    registerSource(lane.source)
  end
end

for _, window in ipairs(windows) do
  if #window.added > 0 then
    local formerHead = not window.wasEmpty and call('ZRANGE', window.key, 0, 0)[1]
    callWithAll('ZADD', window.key, window.added)
    if window.wasEmpty then enterSource(window.lane) end
    if call('ZRANGE', window.key, 0, 0)[1] ~= formerHead then window.lane.hasNewHead = true end
  end
end
for _, lane in pairs(lanes) do
  if lane.hasNewHead then openLane(lane) end
end
callWithAll('HSET', entriesKey, records)
saveQueues()
saveMeta()
return { 'offered', outcomes }
`;

export const offer = script('offer', base, queues, ageing, windows, sources, entries, body);
