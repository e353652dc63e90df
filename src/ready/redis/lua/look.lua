-- Room of windows, and from where their lines were left; also for a feed that begins now.
-- include: base ready-lanes left-lines

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
