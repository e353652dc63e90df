-- Brings back what runs.
-- include: base building packed-states entries

local token = ARGV[2]
-- Three for each task: its id, its queue, and its grant.
local ids, queueOf, grantOf = argumentsFrom(3, 3), argumentsFrom(4, 3), argumentsFrom(5, 3)

if not isStillBuilding(token) then return 'lost' end
local names, counts = {}, {}
local records, order, isHeld = {}, {}, {}
for index, record in ipairs(readRecords(ids)) do
  local taskId, name, grant = ids[index], queueOf[index], grantOf[index]
  if not record and not isHeld[taskId] then
    isHeld[taskId] = true
    append(records, taskId, outRecord('R', now, name, grant, ''))
    append(order, nextNumber(), taskId)
    if not counts[name] then names[#names + 1] = name end
    counts[name] = (counts[name] or 0) + 1
  end
end
callWithAll('HSET', entriesKey, records)
callWithAll('ZADD', outKey, order)
-- Settings are not needed: numbers of their states change, and none of them is idle any more.
for index, state in ipairs(readFields(statesKey, names)) do
  local count = counts[names[index]]
  noteState(names[index], (addToState(state or blankState, count, count, 0)), false)
end
callWithAll('ZREM', idleKey, names)
saveQueues()
saveMeta()
return 'resumed'
