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
  local field = call('HMGET', key, 'unit', 'token', 'gain', 'capacity', 'level', 'at', 'grant')
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

local function tokenWait(bucket, cost)
  local needed = math.min(bucket.capacity, cost * bucket.token)
  return math.max(0, math.ceil((needed - bucket.level) / bucket.gain))
end

local function spend(bucket, cost, grant)
  bucket.level = bucket.level - cost * bucket.token
  bucket.grant = grant
  bucket.isChanged = true
end

-- Answers whether there is more than before.
local function settle(bucket, reserved, used)
  local before = bucket.level
  bucket.level = math.min(bucket.capacity, before + (reserved - used) * bucket.token)
  bucket.isChanged = true
  return bucket.level > before
end

local function saveBuckets()
  for name, bucket in pairs(buckets) do
    if bucket and bucket.isChanged then
      call('HSET', bucket.key, 'level', bucket.level, 'at', now, 'grant', bucket.grant)
      call('ZADD', changedKey, nextNumber(), name)
    end
  end
end
`;
