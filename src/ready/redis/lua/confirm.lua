-- What Postgres granted runs from now on.
-- include: base packed-states out-list

local function addRunning(counts)
  local names = {}
  for name in pairs(counts) do names[#names + 1] = name end
  for index, state in ipairs(readFields(statesKey, names)) do
    local name = names[index]
    noteState(name, (addToState(state or blankState, 0, counts[name], 0)), false)
  end
end

-- Ids first, then their grants.
local size = (#ARGV - 1) / 2
local beforeIds, beforeGrants = 1, 1 + size

if not isOpen then return { size, {} } end
local confirmed, isConfirmed, begun = {}, {}, {}
for index, record in ipairs(readRecords(ARGV, beforeIds + 1, beforeGrants)) do
  local taskId, grant = ARGV[beforeIds + index], ARGV[beforeGrants + index]
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
return { size, {} }
