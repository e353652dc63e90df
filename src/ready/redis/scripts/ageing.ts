/** How urgent a task has become with its age: `AgeingTable`, in Lua. */
export const ageing = String.raw`
local function ageFor(settings, rank, level)
  if level >= rank then return -huge end
  if rank == 1 then return settings.mediumToHigh end
  return level == 0 and settings.lowToHigh or settings.lowToMedium
end

local function levelAt(settings, rank, age)
  if age >= ageFor(settings, rank, 0) then return 0 end
  return age >= ageFor(settings, rank, 1) and 1 or 2
end
`;
