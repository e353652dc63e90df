import { script } from '../script.js';
import { base } from './base.js';
import { building } from './building.js';
import { lines } from './lines.js';
import { queues } from './queues.js';
import { windows } from './windows.js';

const lookBody = String.raw`
local isFeeding = ARGV[2] == '1'
local firstWindow = 3

if not isOpen then return 'closed' end

findLanes(ARGV, firstWindow, #ARGV, 2)
local windows = {}
for at = firstWindow, #ARGV, 2 do
  windows[#windows + 1] = needWindow(loadLane(ARGV[at]), tonumber(ARGV[at + 1]))
end
readWindows()
loadLines(windows)
local looks = {}
for _, window in ipairs(windows) do
  local line = window.line
  if line and isFeeding then beginRound(window) end
  append(looks, math.max(0, window.lane.queue.settings.maxReady - sizeOf(window)))
  append(looks, exact(line and line.at), exact(line and line.seq), line and line.round or '')
end
if isFeeding then
  saveLines(windows)
  saveMeta()
end
return looks
`;

const leaveBody = String.raw`
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
`;

const listBehindBody = String.raw`
local cursor, count = ARGV[2], ARGV[3]

local found = call('HSCAN', leftKey, cursor, 'COUNT', count)
local fields = {}
for index = 1, #found[2], 2 do
  -- One is its mark.
  if found[2][index] ~= '' then fields[#fields + 1] = found[2][index] end
end
return { found[1], fields }
`;

/** Room of windows, and from where their lines were left; also for a feed that begins now. */
export const look = script('look', base, queues, windows, lines, lookBody);

/** What could not be offered; with the token of a restore, where lines are to be fed from. */
export const leave = script('leave', base, lines, building, leaveBody);

/** Windows that are behind, some at a time. */
export const listBehind = script('list-behind', base, lines, listBehindBody);
