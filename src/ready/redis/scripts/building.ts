/** How long a process may take between two steps of a restore before another one may begin. */
export const buildingMs = 10_000;

/** `building` names the process that restores the contents. */
export const building = String.raw`
local function isStillBuilding(token)
  if call('GET', buildingKey) ~= token then return false end
  call('PEXPIRE', buildingKey, ${buildingMs})
  return true
end
`;
