-- What is taken or runs, in the order of taking.
-- include: base out-list

local after, limit = ARGV[2], tonumber(ARGV[3])

if not isOpen then return { '', {} } end
local found = call('ZRANGEBYSCORE', outKey, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, limit + 1)
local isLast = #found / 2 <= limit
local ids = {}
for index = 1, math.min(#found / 2, limit) do ids[index] = found[2 * index - 1] end
local listed = {}
for index, record in ipairs(readRecords(ids)) do
  if not isOut(record) then missPart('entries') end
  local grant, queue, forMs = outGrant(record), outQueue(record), now - outSince(record)
  append(listed, ids[index], grant, queue, isRunning(record) and 1 or 0, forMs)
end
return { isLast and '' or found[2 * limit], listed }
