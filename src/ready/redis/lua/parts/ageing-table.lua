-- How urgent a task has become with its age: `AgeingTable`, in Lua.
local function ageFor(settings, rank, level)
  if level >= rank then return -huge end
  if rank == 1 then return settings.mediumToHigh end
  return level == 0 and settings.lowToHigh or settings.lowToMedium
end

local function levelAt(settings, rank, age)
  if rank == 0 then return 0 end
  if rank == 1 then return age >= settings.mediumToHigh and 0 or 1 end
  if age >= settings.lowToHigh then return 0 end
  return age >= settings.lowToMedium and 1 or 2
end
