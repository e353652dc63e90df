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

local function remove(entry)
  local lane = loadLane(entry.laneKey)
  local queue = lane.queue
  local key = windowKey(entry.rank, lane.key)
  if call('ZRANK', key, entry.member) == 0 then lane.hasNewHead = true end
  call('ZREM', key, entry.member)
  queue[entry.rank] = queue[entry.rank] - 1
  queue.isChanged = true
  if queue.short == entry.taskId then
    queue.short = ''
    queue.lostShort = true
  end
  isGone[entry.taskId] = true
  gone[#gone + 1] = entry.taskId
end

for index, record in ipairs(readRecords(argumentsFrom(2, 1))) do
  local entry = parseWaiting(ARGV[index + 1], record)
  if entry and not isGone[entry.taskId] then remove(entry) end
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
