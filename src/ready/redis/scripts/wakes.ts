/** Whom to tell that something may have become takeable, or that a wait has changed. */
export const wakes = String.raw`
local wakes = {}

local function wakeLanes(keys, count)
  table.insert(keys, 1, count)
  wakes[#wakes + 1] = keys
end

-- One at least when it opens by itself later: who waits has to learn the new wait. One is enough
-- for a limit: whoever gets the first token learns when the next one falls due.
local function wakesOnOpening(queue)
  local settings = queue.settings
  local places = placesIn(queue)
  if places <= 0 or settings.pausedUntil == huge or not knowsItsLimits(queue) then return 0 end
  local most = (settings.pausedUntil > now or queue.hasLimits) and 1 or places
  return math.min(waitingIn(queue), most)
end

local function wakeQueue(queue)
  local count = wakesOnOpening(queue)
  if count > 0 then wakeLanes(call('SMEMBERS', prefix .. 'lanes:' .. queue.name), count) end
end

-- One for each source that shares the limit: the lane whose turn it is.
local function wakeSourcesOf(limit)
  saveSources()
  for _, source in ipairs(call('SMEMBERS', prefix .. 'sources-of:' .. limit)) do
    local top = call('ZRANGE', prefix .. 'index:' .. source, 0, 0)
    if top[1] then wakeLanes(top, 1) end
  end
end
`;
