-- include: queues

-- Buckets: the same operations in the same order as in `src/domain/token-bucket.ts`, on the same kind
-- of numbers. Loaded once in a script, written back at its end when they have changed. `changed` has
-- all their names, by when each changed last.
local changedKey = prefix .. 'changed'
local buckets = {}

-- False: there is no such bucket. The level is as of now. One without its level is a part that is missing;
-- while the contents are built it is what older ones left behind.
local function loadBucket(name)
  local bucket = buckets[name]
  if bucket ~= nil then return bucket end
  stepsLeft = stepsLeft - price.limit
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
  for _, limit in ipairs(limitsIn(queue.settings)) do
    if not loadBucket(limit.bucket) then return false end
  end
  return true
end

-- What was granted in the window up to now, as src/domain/window-use.ts counts it. The field use has since
-- when, the present slot and its count. The field past has the slots before it, the newest first: it is read
-- and written when a slot ends, ten times in a window.
local windowUse = {}

do
local useSlots = 10
local useFormat, pastFormat = '<ddd', '<' .. string.rep('d', useSlots)

local function slotMsOf(bucket)
  return bucket.token / (250 * useSlots)
end

local function pastOf(bucket, use)
  if not use.past then
    local packed = call('HGET', bucket.key, 'past')
    use.past = packed and { struct.unpack(pastFormat, packed) } or {}
    use.past[useSlots + 1] = nil
  end
  return use.past
end

local function advance(bucket, use, slot)
  local past, passed = pastOf(bucket, use), slot - use.slot
  for index = useSlots, 1, -1 do
    if index > passed then past[index] = past[index - passed] or 0 else past[index] = 0 end
  end
  if passed <= useSlots then past[passed] = use.present end
  use.present, use.slot, use.hasNewPast = 0, slot, true
end

local function useOf(bucket)
  local use = bucket.use
  if use then return use end
  local slot = math.floor(now / slotMsOf(bucket))
  if bucket.packedUse then
    local since, formerSlot, present = struct.unpack(useFormat, bucket.packedUse)
    use = { since = since, slot = formerSlot, present = present }
    if slot > formerSlot then advance(bucket, use, slot) end
  else
    use = { since = now, slot = slot, present = 0, past = {}, hasNewPast = true }
  end
  bucket.use = use
  return use
end

local function wholeSlots(bucket, use)
  local sum, past = use.present, pastOf(bucket, use)
  for index = 1, useSlots - 1 do sum = sum + (past[index] or 0) end
  return sum
end

-- The field use; saves past if it changed.
function windowUse.packed(bucket)
  local use = useOf(bucket)
  if use.hasNewPast then
    for index = 1, useSlots do use.past[index] = use.past[index] or 0 end
    call('HSET', bucket.key, 'past', struct.pack(pastFormat, unpack(use.past, 1, useSlots)))
  end
  return struct.pack(useFormat, use.since, use.slot, use.present)
end

function windowUse.count(bucket, count)
  local use = useOf(bucket)
  use.present = use.present + count
end

-- What was used, and in how many of the window's milliseconds it was counted.
function windowUse.read(bucket)
  local use, slotMs = useOf(bucket), slotMsOf(bucket)
  local leaving = pastOf(bucket, use)[useSlots] or 0
  local used = wholeSlots(bucket, use) + (leaving * ((use.slot + 1) * slotMs - now)) / slotMs
  return math.max(0, used), math.min(useSlots * slotMs, now - use.since)
end

-- The use of a bucket whose limit has another window by now.
function windowUse.changed(bucket, shape)
  local before, slotMs, former = useOf(bucket), slotMsOf(shape), slotMsOf(bucket)
  if slotMs == former then return before end
  return {
    since = math.max(before.since, now - useSlots * former),
    slot = math.floor(now / slotMs),
    present = math.floor(wholeSlots(bucket, before) * math.min(1, slotMs / former)),
    past = {},
    hasNewPast = true,
  }
end
end

local function tokenWait(bucket, cost)
  local needed = math.min(bucket.capacity, cost * bucket.token)
  return math.max(0, math.ceil((needed - bucket.level) / bucket.gain))
end

local spend, settle

do
local function markChanged(bucket)
  if not bucket.isChanged then stepsLeft = stepsLeft - price.changedLimit end
  bucket.isChanged = true
end

-- As in `src/domain/token-bucket.ts`.
local function countedAtMost(bucket, tokens)
  local debt = bucket.gain * math.max(3600000, (10 * bucket.token) / 250)
  return math.min(tokens, (bucket.capacity + debt) / bucket.token)
end

function spend(bucket, cost, grant)
  bucket.level = bucket.level - countedAtMost(bucket, cost) * bucket.token
  windowUse.count(bucket, cost)
  bucket.grant = grant
  markChanged(bucket)
end

-- Answers whether there is more than before.
function settle(bucket, reserved, used)
  local before = bucket.level
  local more = countedAtMost(bucket, reserved) - countedAtMost(bucket, used)
  bucket.level = math.min(bucket.capacity, before + more * bucket.token)
  windowUse.count(bucket, used - reserved)
  markChanged(bucket)
  return bucket.level > before
end
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
