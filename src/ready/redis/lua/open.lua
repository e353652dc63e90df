-- The last step of a restore: from now on there are takes and offers.
-- include: base building

local token = ARGV[2]
local generation = ARGV[3]

if not isStillBuilding(token) then return 'lost' end
for _, kind in ipairs({ 'entries', 'states', 'settings', 'windows', 'tails', 'left', 'members' }) do
  call('HSET', prefix .. kind, '', '')
end
call('ZADD', outKey, '-inf', '')
call('ZADD', prefix .. 'changed', '-inf', '')
call('ZADD', prefix .. 'idle', '+inf', '')
call('HDEL', metaKey, 'lost')
call('HSET', metaKey, 'generation', generation, 'run', runOfServer(),
  'sources', generation .. '.' .. whole(nextNumber()) .. ':0')
call('DEL', buildingKey)
saveMeta()
return 'open'
