-- How much waits and runs in every queue.
-- include: base queues

-- Goes on from a cursor over all queues, and tells of those that have something waiting or running.
local cursor = ARGV[2]

if not isOpen then return { '0', {} } end
-- About so many queues are counted by one script: 2 ms.
local countedAtOnce = 1000

local found = call('HSCAN', statesKey, cursor, 'COUNT', countedAtOnce)
local told, fields = {}, found[2]
for index = 1, #fields, 2 do
  if fields[index] ~= '' then
    local _, turn, _, _, running, _, high, medium, low = struct.unpack(stateFormat, fields[index + 1])
    if running + high + medium + low > 0 then
      append(told, fields[index], whole(turn), digits(running), digits(high), digits(medium), digits(low))
    end
  end
end
return { found[1], told }
