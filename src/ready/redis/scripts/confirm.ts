import { script } from '../script.js';
import { base } from './base.js';
import { entries } from './entries.js';
import { outRecords } from './out-records.js';
import { packedStates } from './packed-states.js';
import { queues } from './queues.js';

const body = String.raw`
local function addRunning(counts)
  local names = {}
  for name in pairs(counts) do names[#names + 1] = name end
  for index, state in ipairs(readFields(statesKey, names)) do
    local name = names[index]
    noteState(name, (addToState(state or blankState, 0, counts[name], 0)), false)
  end
end

if not isOpen then return end

-- Ids first, then their grants.
local size = (#ARGV - 1) / 2
local confirmed, isConfirmed, begun = {}, {}, {}
for index, record in ipairs(readRecords(ARGV, 2, 1 + size)) do
  local taskId, grant = ARGV[1 + index], ARGV[1 + size + index]
  if isOut(record) and not isRunning(record) and outGrant(record) == grant
    and not isConfirmed[taskId] then
    local name, last = outQueue(record), #confirmed
    begun[name] = (begun[name] or 0) + 1
    isConfirmed[taskId] = true
    confirmed[last + 1], confirmed[last + 2] = taskId, 'R' .. sub(record, 2)
  end
end
callWithAll('HSET', entriesKey, confirmed)
addRunning(begun)
saveQueues()
saveMeta()
`;

/** What Postgres granted runs from now on. */
export const confirm = script(
  'confirm',
  ...[base, queues, packedStates, entries, outRecords, body],
);
