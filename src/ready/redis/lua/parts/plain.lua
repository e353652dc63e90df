-- include: packed-states

-- Plain queues: they have no settings, so nothing closes them and nobody is to be woken when a slot
-- comes back. What is taken and ends is only counted, in the packed state: a table for each would cost
-- more than all else about a task, when each task is of another queue.
-- By name: the states as they were, and how many slots come back, of them so many of what runs.
local plainStates, freedSlots, endedRuns = {}, {}, {}

-- Which of these queues are plain.
local function findPlain(names)
  for index, state in ipairs(readFields(statesKey, names)) do
    plainStates[names[index]] = state and byte(state) == 0 and state
  end
end

local function freePlain(name, isConfirmed)
  -- Its state, and that of an older idle one which is forgotten for it.
  if not freedSlots[name] then stepsLeft = stepsLeft - price.movedLane end
  freedSlots[name] = (freedSlots[name] or 0) + 1
  if isConfirmed then endedRuns[name] = (endedRuns[name] or 0) + 1 end
end

-- To be followed by saveQueues.
local function savePlain()
  for name, freed in pairs(freedSlots) do
    noteState(name, addToState(plainStates[name], -freed, -(endedRuns[name] or 0), 0))
  end
end
