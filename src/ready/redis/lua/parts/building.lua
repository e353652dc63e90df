local buildingMs = 10000

-- `building` names the process that restores the contents.
local function isStillBuilding(token)
  if call('GET', buildingKey) ~= token then return false end
  call('PEXPIRE', buildingKey, buildingMs)
  return true
end
