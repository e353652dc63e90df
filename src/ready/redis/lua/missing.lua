-- Which ids have no record.
-- include: base entries

local missing = {}
local ids = argumentsFrom(2, 1)
for index, record in ipairs(readRecords(ids)) do
  if not record then missing[#missing + 1] = ids[index] end
end
return missing
