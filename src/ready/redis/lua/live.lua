-- What is to be seen of a queue.
-- include: base buckets counting

local name = ARGV[2]
local queue = loadQueue(name)

-- How many of a rank have become at least as urgent as a level.
local function countAged(lane, rank, level)
  local eligibleBy = now - ageFor(queue.settings, rank, level)
  return countFirst(lane, rank, huge, function(entry) return entry.eligibleAt <= eligibleBy end)
end

local mediumToHigh, lowToHigh, lowToMedium, oldest = 0, 0, 0, huge
for _, lane in ipairs(lanesOf(queue)) do
  mediumToHigh = mediumToHigh + countAged(lane, 1, 0)
  lowToHigh = lowToHigh + countAged(lane, 2, 0)
  lowToMedium = lowToMedium + countAged(lane, 2, 1)
  for rank = 0, 2 do
    local head = headOfWindow(lane, rank)
    if head then oldest = math.min(oldest, head.eligibleAt) end
  end
end
-- Whoever is old enough for high was old enough for medium, and is in both counts.
lowToMedium = lowToMedium - lowToHigh

local levels = {}
for _, limit in ipairs(limitsIn(queue.settings)) do
  local bucket = loadBucket(limit.bucket)
  if bucket then
    local tokens = string.format('%.17g', bucket.level / bucket.token)
    local used, counted = windowUse.read(bucket)
    append(levels, bucket.name, tokens, call('HGET', bucket.key, 'limit'),
      string.format('%.17g', used), whole(counted))
  end
end
return {
  { queue[0], queue[1], queue[2] },
  {
    queue[0] + mediumToHigh + lowToHigh,
    queue[1] - mediumToHigh + lowToMedium,
    queue[2] - lowToHigh - lowToMedium,
  },
  queue.running,
  oldest < huge and now - oldest or '',
  levels,
}
