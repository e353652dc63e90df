-- What could not be offered; with the token of a restore, where lines are to be fed from.
-- include: base building left-lines

local token = ARGV[2]
local firstPlace, placeArguments = 3, 4

if token ~= '' then
  if not isStillBuilding(token) then return 'lost' end
elseif not isOpen then
  return 'closed'
end

local windows, byField = {}, {}
for at = firstPlace, #ARGV, placeArguments do
  local field = ARGV[at + 1] .. ARGV[at]
  if not byField[field] then
    byField[field] = { field = field }
    windows[#windows + 1] = byField[field]
  end
end
loadLines(windows)
for at = firstPlace, #ARGV, placeArguments do
  leave(byField[ARGV[at + 1] .. ARGV[at]], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]))
end
saveLines(windows)
saveMeta()
return 'left'
