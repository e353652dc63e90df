import { script } from '../script.js';
import { base } from './base.js';
import { entries } from './entries.js';
import { outRecords } from './out-records.js';
import { queues } from './queues.js';

const body = String.raw`
-- In the packed state, where it has its place: all else about the queue stays as it is.
local runningAt = 1 + struct.size('<Bddi')
local function addRunning(counts)
  local names = {}
  for name in pairs(counts) do names[#names + 1] = name end
  for index, state in ipairs(readFields(statesKey, names)) do
    local name = names[index]
    state = state or blankState
    local running, rest = struct.unpack('<i', state, runningAt)
    running = running + counts[name]
    noteState(name, sub(state, 1, runningAt - 1) .. struct.pack('<i', running) .. sub(state, rest), false)
  end
end

if not isOpen then return end

local ids = idsFrom(2)
local confirmed, isConfirmed, begun = {}, {}, {}
for index, record in ipairs(readRecords(ids)) do
  local taskId, grant = ids[index], sub(ARGV[index + 1], idSize + 1)
  if isOut(record) and not isRunning(record) and outGrant(record) == grant
    and not isConfirmed[taskId] then
    local name, size = outQueue(record), #confirmed
    begun[name] = (begun[name] or 0) + 1
    isConfirmed[taskId] = true
    confirmed[size + 1], confirmed[size + 2] = taskId, 'R' .. sub(record, 2)
  end
end
callWithAll('HSET', entriesKey, confirmed)
addRunning(begun)
saveQueues()
saveMeta()
`;

/** What Postgres granted runs from now on. */
export const confirm = script('confirm', base, queues, entries, outRecords, body);
