import { script } from '../script.js';
import { base } from './base.js';
import { entries } from './entries.js';
import { queues } from './queues.js';

const body = String.raw`
if not isOpen then return end

local records = readRecords(argumentsFrom(2, 2))
local confirmed, isConfirmed = {}, {}
for index, record in ipairs(records) do
  local taskId, grant = ARGV[2 * index], ARGV[2 * index + 1]
  local out = parseOut(record)
  if out and not out.isConfirmed and out.grant == grant and not isConfirmed[taskId] then
    local queue = loadQueue(out.queueName)
    queue.running = queue.running + 1
    queue.isChanged = true
    isConfirmed[taskId] = true
    confirmed[#confirmed + 1] = taskId
    confirmed[#confirmed + 1] = 'R' .. sub(record, 2)
  end
end
callWithAll('HSET', entriesKey, confirmed)
saveQueues()
saveMeta()
`;

/** What Postgres granted runs from now on. */
export const confirm = script('confirm', base, queues, entries, body);
