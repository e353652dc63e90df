-- Keeps the place of the process that restores.
-- include: base building

local token = ARGV[2]
return isStillBuilding(token) and 1 or 0
