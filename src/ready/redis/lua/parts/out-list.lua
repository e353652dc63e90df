-- include: entries

-- Records of what is out are read where they stand: to make a table of each costs more than all else about
-- it.
local waitingByte, runningByte = byte('W'), byte('R')

local function isOut(record)
  return record and byte(record) ~= waitingByte
end

local function isRunning(record)
  return byte(record) == runningByte
end

local function outQueue(record)
  return sub(record, outQueueAt, find(record, '\31', outQueueAt, true) - 1)
end

local function outSince(record)
  return (struct.unpack('<d', record, 2))
end

local function outGrant(record)
  local from = find(record, '\31', outQueueAt, true) + 1
  return sub(record, from, find(record, '\31', from, true) - 1)
end

local function outCost(record)
  return string.match(record, '^[^\31]*\31[^\31]*\31(.*)$', outQueueAt)
end
