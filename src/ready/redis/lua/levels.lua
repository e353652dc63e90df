-- Levels of the buckets that changed after a number of the counter.
-- include: base buckets

local generation, after = ARGV[2], ARGV[3]

if not isOpen then return { '', '0', {} } end
if generation ~= meta.generation then after = '-inf' end
local found = call('ZRANGEBYSCORE', changedKey, '(' .. after, '+inf', 'WITHSCORES', 'LIMIT', 0, constant.levelsAtOnce)
local levels = {}
for index = 1, #found, 2 do
  local bucket = loadBucket(found[index])
  append(levels, found[index], string.format('%.17g', bucket.level / bucket.token))
end
local isLast = #found < 2 * constant.levelsAtOnce
return { meta.generation, isLast and whole(meta.counter) or found[#found], levels }
