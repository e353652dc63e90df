-- Windows that are behind, some at a time.
-- include: base left-lines

local cursor, count = ARGV[2], ARGV[3]

local found = call('HSCAN', leftKey, cursor, 'COUNT', count)
local fields = {}
for index = 1, #found[2], 2 do
  -- One is its mark.
  if found[2][index] ~= '' then fields[#fields + 1] = found[2][index] end
end
return { found[1], fields }
