-- include: queues

-- What changes numbers of a queue alone changes them in its packed state: no table is made of it.
-- Where it has the counts of what waits, by rank.
local waitingAt = 1 + struct.size('<Bddiii')

local function waitingOfState(state, rank)
  return (struct.unpack('<i', state, waitingAt + 4 * rank))
end

-- Answers with the state, and whether nothing waits and no slot is taken.
local function addToState(state, addedSlots, addedRunning, addedWaiting, rank)
  local hasSettings, turn, probesLeft, slots, running, parked, high, medium, low, rest =
    struct.unpack(stateFormat, state)
  slots, running = slots + addedSlots, running + addedRunning
  if rank == 0 then high = high + addedWaiting end
  if rank == 1 then medium = medium + addedWaiting end
  if rank == 2 then low = low + addedWaiting end
  local packed = struct.pack(stateFormat, hasSettings, turn, probesLeft, slots, running, parked, high,
    medium, low)
  if rest <= #state then packed = packed .. sub(state, rest) end
  return packed, slots == 0 and high + medium + low == 0
end
