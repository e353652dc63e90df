-- Deletes older contents by the names of their keys.
-- include: base building

local token = ARGV[2]
local firstKey = 3

if not isStillBuilding(token) then return 'lost' end
for at = firstKey, #ARGV do
  if ARGV[at] ~= metaKey and ARGV[at] ~= buildingKey then call('UNLINK', ARGV[at]) end
end
return 'discarded'
