/**
 * `entries` has a record for each task that is held, `out` those that are taken or run, in the order
 * of taking. What waits says where; what is out says since when and under which grant.
 */
export const entries = String.raw`
local waitingPattern = '^W(%d)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$'
local outPattern = '^(.)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$'

local function waitingRecord(rank, orderedAt, seq, eligibleAt, laneKey, cost)
  return 'W' .. rank .. '\31' .. orderedAt .. '\31' .. seq .. '\31' .. eligibleAt
    .. '\31' .. laneKey .. '\31' .. cost
end

local function outRecord(state, queue, grant, since, cost)
  return state .. '\31' .. queue .. '\31' .. grant .. '\31' .. since .. '\31' .. cost
end

-- Nil: it does not wait.
local function parseWaiting(taskId, record)
  local rank, orderedAt, seq, eligibleAt, laneKey, cost = string.match(record or '', waitingPattern)
  if not rank then return nil end
  return {
    taskId = taskId,
    rank = tonumber(rank),
    orderedAt = tonumber(orderedAt),
    eligibleAt = tonumber(eligibleAt),
    member = seq .. taskId .. eligibleAt,
    laneKey = laneKey,
    costText = cost,
    level = false,
  }
end

-- Nil: it is neither taken nor runs.
local function parseOut(record)
  local state, queue, grant, since, cost = string.match(record or '', outPattern)
  if not state then return nil end
  return {
    isConfirmed = state == 'R',
    queueName = queue,
    grant = grant,
    since = tonumber(since),
    costText = cost,
  }
end

-- Of all ids, in their order; false for those that are not held.
local function readRecords(ids)
  local records = {}
  for first = 1, #ids, chunk do
    local last = math.min(first + chunk - 1, #ids)
    local found = call('HMGET', entriesKey, unpack(ids, first, last))
    for index = 1, #found do records[first + index - 1] = found[index] end
  end
  return records
end

local function argumentsFrom(first, step)
  local values = {}
  for at = first, #ARGV, step do values[#values + 1] = ARGV[at] end
  return values
end

local function parseCost(text)
  return text == '' and {} or cjson.decode(text)
end
`;
