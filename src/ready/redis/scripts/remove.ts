import { script } from '../script.js';
import { ageing } from './ageing.js';
import { base } from './base.js';
import { buckets } from './buckets.js';
import { entries } from './entries.js';
import { sources } from './sources.js';
import { wakes } from './wakes.js';
import { windows } from './windows.js';
import { queues } from './queues.js';

const body = String.raw`
if not isOpen then return {} end

local gone, isGone = {}, {}
opensSooner = false

-- Answers whether it was the first.
local function removeFromWindow(window, member)
  touch(window)
  if window.isLong then
    local isFirst = call('ZRANK', window.key, member) == 0
    call('ZREM', window.key, member)
    window.hasRemoved = true
    return isFirst
  end
  local text = window.text
  local at = find(text, member, 1, true)
  window.text = sub(text, 1, at - 1) .. sub(text, at + packedSize)
  return at == 1
end

local function remove(entry)
  local lane = loadLane(entry.laneKey)
  local queue = lane.queue
  if removeFromWindow(windowOf(lane, entry.rank), entry.member) then lane.hasNewHead = true end
  queue[entry.rank] = queue[entry.rank] - 1
  queue.isChanged = true
  if queue.short == entry.taskId then
    queue.short = ''
    queue.lostShort = true
  end
  isGone[entry.taskId] = true
  gone[#gone + 1] = entry.taskId
end

local found, keys = {}, {}
for index, record in ipairs(readRecords(argumentsFrom(2, 1))) do
  local entry = parseWaiting(ARGV[index + 1], record)
  if entry then
    found[#found + 1] = entry
    keys[#keys + 1] = entry.laneKey
  end
end
loadLanes(keys, 1)
for _, entry in ipairs(found) do
  if not isGone[entry.taskId] then remove(entry) end
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
callWithAll('HDEL', entriesKey, gone)
saveWindows()
saveSources()
saveQueues()
saveMeta()
return wakes
`;

/** What waits and is not to be taken any more. */
export const remove = script(
  'remove',
  base,
  queues,
  ageing,
  windows,
  sources,
  entries,
  buckets,
  wakes,
  body,
);
