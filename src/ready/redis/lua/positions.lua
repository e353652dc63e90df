-- Of each task how many of its queue are taken before it.
-- include: base entries counting

local limit = tonumber(ARGV[2])
local ids = argumentsFrom(3, 1)
local lanesByQueue = {}
-- For all of them together: what comes after that are lower bounds.
local looksLeft = 5000

local function countBefore(waiting)
  local queue = loadLane(waiting.laneKey).queue
  waiting.queue = queue
  local lanes = lanesByQueue[queue]
  if not lanes then
    lanes = lanesOf(queue)
    lanesByQueue[queue] = lanes
  end
  local function isBeforeIt(other) return isTakenBefore(other, waiting) end
  local count = 0
  for _, lane in ipairs(lanes) do
    if looksLeft <= 0 then break end
    for rank = 0, 2 do
      if queue[rank] > 0 then
        looksLeft = looksLeft - 1
        count = count + countFirst(lane, rank, limit - count, isBeforeIt)
      end
    end
  end
  -- Nothing of a lower priority becomes more urgent than what is above it already.
  local above = 0
  for rank = 0, levelOf(waiting) - 1 do above = above + queue[rank] end
  return math.min(limit, math.max(count, above))
end

local positions = {}
for index, record in ipairs(readRecords(ids)) do
  local waiting = parseWaiting(ids[index], record)
  positions[index] = waiting and digits(countBefore(waiting)) or ''
end
return positions
