-- include: routing-groups buckets

-- Whom to tell that something may have become takeable, or that a wait has changed.
local wakes = {}

local function wakeLanes(keys, count)
  table.insert(keys, 1, count)
  wakes[#wakes + 1] = keys
end

local wakeQueue
-- More lanes than this are not named, of one queue and in all: a worker that could take from the queue is woken.
local maxWoken, namesLeft = 100, 500

do
-- One at least when it opens by itself later: who waits has to learn the new wait. One is enough
-- for a limit: whoever gets the first token learns when the next one falls due.
local function wakesOnOpening(queue)
  local settings = queue.settings
  local places = placesIn(queue)
  if places <= 0 or settings.pausedUntil == huge or not knowsItsLimits(queue) then return 0 end
  local most = (settings.pausedUntil > now or queue.hasLimits) and 1 or places
  return math.min(waitingIn(queue), most)
end

function wakeQueue(queue)
  local count = wakesOnOpening(queue)
  if count == 0 then return end
  saveEmptied()
  local key = prefix .. 'lanes:' .. queue.name
  local size = call('SCARD', key)
  local isMany = size > math.min(maxWoken, namesLeft)
  if not isMany then namesLeft = namesLeft - size end
  wakeLanes(isMany and { queue.name .. '\n*\n' } or call('SMEMBERS', key), count)
end
end

-- One for each source that shares the limit: the lane whose turn it is.
local function wakeSourcesOf(limit)
  saveSources()
  local key = prefix .. 'sources-of:' .. limit
  local cost = call('SCARD', key) * price.movedLane
  if cost > math.min(maxWoken * price.movedLane, stepsLeft) then return wakeLanes({ '\n*\n' }, 1) end
  stepsLeft = stepsLeft - cost
  for _, source in ipairs(call('SMEMBERS', key)) do
    -- Wildcard lanes stand for lanes that have a source of their own.
    local isWildcard = find(source, '\n*\n', 1, true)
    local top = isWildcard and {} or call('ZRANGE', prefix .. 'index:' .. source, 0, 0)
    if top[1] then wakeLanes(top, 1) end
  end
end
