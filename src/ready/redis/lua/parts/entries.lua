-- `entries` has a record for each task that is held, `out` those that are taken or run, in the order
-- of taking. What waits says where; what is out says since when and under which grant.
-- Of what is out: its state, since when, and from here on its queue, grant and cost.
local outQueueAt = 1 + 1 + struct.size('<d')

-- What stands in its window, and where that is.
local function waitingRecord(field, packed, cost)
  return 'W' .. packed .. field .. '\31' .. cost
end

local function outRecord(state, since, queue, grant, cost)
  return state .. struct.pack('<d', since) .. queue .. '\31' .. grant .. '\31' .. cost
end

-- Nil: it does not wait.
local function parseWaiting(taskId, record)
  if not record or sub(record, 1, 1) ~= 'W' then return nil end
  local eligibleAt, orderedAt = struct.unpack('<dd', record, 54)
  local rank, laneKey, cost = string.match(record, '^(%d)([^\31]*)\31(.*)$', 70)
  return {
    taskId = taskId,
    rank = tonumber(rank),
    orderedAt = orderedAt,
    eligibleAt = eligibleAt,
    member = sub(record, 2, 61),
    laneKey = laneKey,
    costText = cost,
    level = false,
  }
end

-- Of all ids in a list, or in a part of it, in their order; false for those that are not held.
local function readRecords(ids, first, last)
  return readFields(entriesKey, ids, first, last)
end

local function parseCost(text)
  return text == '' and {} or cjson.decode(text)
end
