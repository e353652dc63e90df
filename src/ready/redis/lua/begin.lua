-- Closes the queue for a restore, unless it has this generation or another process is at it. In parts: older
-- contents are not whole, and are to be discarded by the names of their keys.
-- include: base building

local token = ARGV[2]
local generation = ARGV[3]

-- Contents of another generation are of no use: Postgres refuses every claim of them.
if meta.generation == generation and isOfThisRun() then return 'open' end
local holder = call('GET', buildingKey)
if holder and holder ~= token then return 'busy' end
-- With a part missing, what is left of the rest is not found from key to key.
local isWhole = found[3] and call('HEXISTS', metaKey, 'lost') == 0
call('SET', buildingKey, token, 'PX', buildingMs)
call('HDEL', metaKey, 'generation', 'run')
saveMeta()
return isWhole and 'yours' or 'in parts'
