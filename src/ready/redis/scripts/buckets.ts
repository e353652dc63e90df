/**
 * Buckets: the same operations in the same order as in `src/domain/token-bucket.ts`, on the same kind
 * of numbers. Loaded once in a script, written back at its end when they have changed. `changed` has
 * all their names, by when each changed last.
 */
export const buckets = String.raw`
local changedKey = prefix .. 'changed'
local buckets = {}

-- False: there is no such bucket. The level is as of now. One without its level is a part that is missing;
-- while the contents are built it is what older ones left behind.
local function loadBucket(name)
  local bucket = buckets[name]
  if bucket ~= nil then return bucket end
  local key = prefix .. 'b:' .. name
  local field = call('HMGET', key, 'unit', 'token', 'gain', 'capacity', 'level', 'at', 'grant', 'use')
  bucket = false
  if field[1] and field[5] and field[6] then
    bucket = {
      name = name,
      key = key,
      unit = field[1],
      token = tonumber(field[2]),
      gain = tonumber(field[3]),
      capacity = tonumber(field[4]),
      grant = field[7],
      packedUse = field[8],
    }
    local elapsed = now - tonumber(field[6])
    bucket.level = math.min(bucket.capacity, tonumber(field[5]) + elapsed * bucket.gain)
  elseif isOpen and field[1] or call('ZSCORE', changedKey, name) then
    missPart(key)
  end
  buckets[name] = bucket
  return bucket
end

-- A queue that uses a limit which nobody has made gives nothing.
local function knowsItsLimits(queue)
  for _, limit in ipairs(queue.settings.limits) do
    if not loadBucket(limit.bucket) then return false end
  end
  return true
end

-- What was granted in the window up to now, as src/domain/window-use.ts counts it. Kept as text: since when,
-- the present slot, and the counts from there on.
local windowUse = {}

do
local useSlots = 10

local function slotMsOf(bucket)
  return bucket.token / (250 * useSlots)
end

local function advanceUse(use, slotMs)
  local slot = math.floor(now / slotMs)
  local passed = math.min(slot - use.slot, useSlots + 1)
  if passed > 0 then
    for index = useSlots, 0, -1 do use[index] = index >= passed and use[index - passed] or 0 end
  end
  use.slot = slot
end

local function useOf(bucket)
  local use = bucket.use
  if use then return use end
  local slotMs = slotMsOf(bucket)
  use = { since = now, slot = math.floor(now / slotMs) }
  for index = 0, useSlots do use[index] = 0 end
  bucket.use = use
  if bucket.packedUse then
    local index = -2
    for number in string.gmatch(bucket.packedUse, '%S+') do
      if index == -2 then use.since = tonumber(number)
      elseif index == -1 then use.slot = tonumber(number)
      else use[index] = tonumber(number) end
      index = index + 1
    end
    advanceUse(use, slotMs)
  end
  return use
end

function windowUse.packed(bucket)
  local use = useOf(bucket)
  local last = useSlots
  while last > 0 and use[last] == 0 do last = last - 1 end
  local numbers = { digits(use.since), digits(use.slot) }
  for index = 0, last do numbers[index + 3] = digits(use[index]) end
  return table.concat(numbers, ' ')
end

local function wholeSlots(use)
  local sum = 0
  for index = 0, useSlots - 1 do sum = sum + use[index] end
  return sum
end

function windowUse.count(bucket, count)
  local use = useOf(bucket)
  use[0] = use[0] + count
end

-- What was used, and in how many of the window's milliseconds it was counted.
function windowUse.read(bucket)
  local use, slotMs = useOf(bucket), slotMsOf(bucket)
  local left = slotMs - (now - use.slot * slotMs)
  local used = wholeSlots(use) + (use[useSlots] * left) / slotMs
  return math.max(0, used), math.min(useSlots * slotMs, now - use.since)
end

-- The use of a bucket whose limit has another window by now.
function windowUse.changed(bucket, shape)
  local before, slotMs, former = useOf(bucket), slotMsOf(shape), slotMsOf(bucket)
  if slotMs == former then return before end
  local use = {
    since = math.max(before.since, now - useSlots * former),
    slot = math.floor(now / slotMs),
  }
  for index = 1, useSlots do use[index] = 0 end
  use[0] = math.floor(wholeSlots(before) * math.min(1, slotMs / former))
  return use
end
end

local function tokenWait(bucket, cost)
  local needed = math.min(bucket.capacity, cost * bucket.token)
  return math.max(0, math.ceil((needed - bucket.level) / bucket.gain))
end

local function spend(bucket, cost, grant)
  bucket.level = bucket.level - cost * bucket.token
  windowUse.count(bucket, cost)
  bucket.grant = grant
  bucket.isChanged = true
end

-- Answers whether there is more than before.
local function settle(bucket, reserved, used)
  local before = bucket.level
  bucket.level = math.min(bucket.capacity, before + (reserved - used) * bucket.token)
  windowUse.count(bucket, used - reserved)
  bucket.isChanged = true
  return bucket.level > before
end

local function saveBuckets()
  for name, bucket in pairs(buckets) do
    if bucket and bucket.isChanged then
      call('HSET', bucket.key, 'level', bucket.level, 'at', now, 'grant', bucket.grant,
        'use', windowUse.packed(bucket))
      call('ZADD', changedKey, nextNumber(), name)
    end
  end
end
`;
