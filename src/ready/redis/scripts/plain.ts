/**
 * Plain queues: they have no settings, so nothing closes them and nobody is to be woken when a slot
 * comes back. What is taken and ends is only counted, in the packed state: a table for each would cost
 * more than all else about a task, when each task is of another queue.
 */
export const plain = String.raw`
-- By name: the states as they were, and how many slots come back, of them so many of what runs.
local plainStates, freedSlots, endedRuns = {}, {}, {}

-- The rest of them is loaded. Answers how many those are.
local function findPlain(names)
  local new, configured = {}, {}
  for _, name in ipairs(names) do
    if plainStates[name] == nil then
      plainStates[name] = false
      new[#new + 1] = name
    end
  end
  for index, state in ipairs(readFields(statesKey, new)) do
    if state and byte(state) == 0 then
      plainStates[new[index]] = state
    else
      configured[#configured + 1] = new[index]
    end
  end
  loadQueues(configured)
  return #configured
end

local function freePlain(name, isConfirmed)
  freedSlots[name] = (freedSlots[name] or 0) + 1
  if isConfirmed then endedRuns[name] = (endedRuns[name] or 0) + 1 end
end

-- To be followed by saveQueues.
local function savePlain()
  for name, freed in pairs(freedSlots) do
    noteState(name, addToState(plainStates[name], -freed, -(endedRuns[name] or 0), 0))
  end
end
`;
