import { script } from '../script.js';
import { base } from './base.js';
import { entries } from './entries.js';
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

local records = readRecords(argumentsFrom(2, 2))
local confirmed, isConfirmed, begun = {}, {}, {}
for index, record in ipairs(records) do
  local taskId, grant = ARGV[2 * index], ARGV[2 * index + 1]
  local out = parseOut(record)
  if out and not out.isConfirmed and out.grant == grant and not isConfirmed[taskId] then
    begun[out.queueName] = (begun[out.queueName] or 0) + 1
    isConfirmed[taskId] = true
    confirmed[#confirmed + 1] = taskId
    confirmed[#confirmed + 1] = 'R' .. sub(record, 2)
  end
end
callWithAll('HSET', entriesKey, confirmed)
addRunning(begun)
saveQueues()
saveMeta()
`;

/** What Postgres granted runs from now on. */
export const confirm = script('confirm', base, queues, entries, body);
