-- What holds queues back, and how urgent what waits in them is by now.
-- include: base gate counting

-- Tells of queues what holds them back, and counts, oldest and some ages by how urgent it all is by now: of the first of
-- them, until it has done enough.
if not isOpen then return {} end

local function heldBackBy(queue, lanes)
  if waitingIn(queue) == 0 then return '' end
  if queue.settings.pausedUntil > now then return 'pause' end
  if queue.probesLeft <= 0 then return 'probes' end
  if placesIn(queue) <= 0 then return 'max_concurrency' end
  if not queue.hasLimits then return '' end
  if not knowsItsLimits(queue) then return 'rate_limit' end
  for _, lane in ipairs(lanes) do
    local head = headOf(lane)
    if head and opensAt(head) <= now and tokensAt(head, true) <= now then return '' end
  end
  return 'rate_limit'
end

-- Of a window: how many have each level, and when the oldest of them became eligible.
local function countLevels(lane, rank, counts, oldest)
  local first = headOfWindow(lane, rank)
  if not first then return end
  local window, counted = windowOf(lane, rank), 0
  for level = 0, rank - 1 do
    local eligibleBy = now - ageFor(lane.queue.settings, rank, level)
    if first.eligibleAt <= eligibleBy then
      local count = countFirst(lane, rank, huge, function(entry) return entry.eligibleAt <= eligibleBy end)
      counts[rank], counts[level] = counts[rank] - (count - counted), counts[level] + count - counted
      oldest[level] = math.min(oldest[level], first.eligibleAt)
      counted = count
      if count >= window.size or stepsLeft <= 0 then return end
      first = entryAt(window, count)
    end
  end
  oldest[rank] = math.min(oldest[rank], first.eligibleAt)
end

-- All of a small window, and three of any other: each of a long one is a call.
local function sampleWindow(lane, rank, samples)
  if stepsLeft <= 0 then return end
  local window = windowOf(lane, rank)
  if not window.entries then window.entries, window.size = {}, sizeOf(window) end
  local taken = window.size <= 8 and window.size or 3
  for n = 0, taken - 1 do
    local entry = entryAt(window, math.floor((2 * n + 1) * window.size / (2 * taken)))
    append(samples, digits(levelOf(entry)), whole(now - entry.eligibleAt), tostring(window.size / taken))
  end
end

local function surveyed(queue)
  local lanes = waitingIn(queue) > 0 and lanesOf(queue) or {}
  local counts, oldest = { queue[1], queue[2], [0] = queue[0] }, { huge, huge, [0] = huge }
  local samples = {}
  for _, lane in ipairs(lanes) do
    for rank = 0, 2 do
      if queue[rank] > 0 and headOfWindow(lane, rank) then
        countLevels(lane, rank, counts, oldest)
        sampleWindow(lane, rank, samples)
      end
    end
  end
  local told = { queue.name, heldBackBy(queue, lanes) }
  for rank = 0, 2 do
    append(told, digits(counts[rank]), oldest[rank] < huge and whole(now - oldest[rank]) or '')
  end
  told[#told + 1] = samples
  return told
end

local names = argumentsFrom(2, 1)
loadQueues(names)
local queuesTold = {}
for index, name in ipairs(names) do
  -- Of one whose lanes are not seen, nobody could say what holds it back.
  if index > 1 and (stepsLeft <= 0 or lanesLeft < maxLanesSeen) then break end
  queuesTold[index] = surveyed(queues[name])
end
return queuesTold
