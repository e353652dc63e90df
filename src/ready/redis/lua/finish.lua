-- What no longer runs: the slot comes back, and the real usage is settled.
-- include: base openings

-- Ids first, then a text for each: its grant and, if its usage is known, a line of that.
local size = (#ARGV - 1) / 2
local beforeIds, beforeTexts = 1, 1 + size

if not isOpen then return 'closed' end

-- Tokens come back together with the slot: of what holds none any more only the debt is booked.
local function settleUsage(name, reserved, usage, holdsSlot)
  if plainStates[name] then return end
  if not queues[name] then stepsLeft = stepsLeft - price.queue end
  local queue = loadQueue(name)
  for _, limit in ipairs(limitsIn(queue.settings)) do
    local bucket = loadBucket(limit.bucket)
    local used = bucket and bucket.unit ~= constant.requestUnit and usage[bucket.unit]
    local expected = bucket and reserved[bucket.unit] or 0
    if used and (holdsSlot or used > expected) then
      settleLimit(queue, limit, bucket, expected, used)
    end
  end
end

local records = readRecords(ARGV, beforeIds + 1, beforeTexts)
for index, name in ipairs(findQueues(records)) do
  if not goesOn(index) then break end
  local taskId, record, text = ARGV[beforeIds + index], records[index], ARGV[beforeTexts + index]
  local lineEnd = find(text, '\n', 1, true)
  local grant = lineEnd and sub(text, 1, lineEnd - 1) or text
  local holdsSlot = name and not isGone[taskId] and outGrant(record) == grant
  if lineEnd then
    local told = cjson.decode(sub(text, lineEnd + 1))
    -- What was sent before and holds no slot was settled when it gave the slot back.
    if holdsSlot or not told.isResent then
      settleUsage(told.queue, told.reserved, told.usage, holdsSlot)
    end
  end
  if holdsSlot then release(taskId, name, record) end
end
return finishRelease()
