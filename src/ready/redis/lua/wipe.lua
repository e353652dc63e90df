-- Deletes what is left of older contents, some of it at a time.
-- include: base building

local token = ARGV[2]
local atOnce = 200

if not isStillBuilding(token) then return 'lost' end

local lanesLeft, wildcards = 300, {}

local function wipeAll(kind, key)
  call('UNLINK', prefix .. kind .. '0' .. key, prefix .. kind .. '1' .. key, prefix .. kind .. '2' .. key)
end

-- False: it has more lanes than one script may wipe.
local function wipeQueue(name)
  for _, lane in ipairs(call('SPOP', prefix .. 'lanes:' .. name, lanesLeft)) do
    wipeAll('w:', lane)
    wildcards[name .. '\n*' .. sub(lane, (find(lane, '\n', #name + 2, true)))] = true
    lanesLeft = lanesLeft - 1
  end
  if lanesLeft == 0 then return false end
  call('UNLINK', prefix .. 'lanes:' .. name, prefix .. 'parked-of:' .. name,
    prefix .. 'reopening-of:' .. name)
  return true
end

local function wipeSource(source)
  call('UNLINK', prefix .. 'index:' .. source, prefix .. 'parked:' .. source,
    prefix .. 'alarms:' .. source)
  stepsLeft = stepsLeft - price.source
  for limit in string.gmatch(string.match(source, '^[^\n]*'), '[^\t]+') do
    stepsLeft = stepsLeft - price.newSource
    call('UNLINK', prefix .. 'sources-of:' .. limit)
  end
end

-- Answers whether there were some.
local function wipeSources()
  local hasFound = false
  repeat
    local sources = call('ZPOPMIN', prefix .. 'sources', 10)
    if #sources == 0 then break end
    hasFound = true
    for index = 1, #sources, 2 do wipeSource(sources[index]) end
  until stepsLeft <= 0
  return hasFound
end

local names = call('HRANDFIELD', prefix .. 'states', atOnce)
local wiped = {}
for _, name in ipairs(names) do
  if not wipeQueue(name) then break end
  wiped[#wiped + 1] = name
end
for key in pairs(wildcards) do wipeAll('heads:', key) end
callWithAll('HDEL', prefix .. 'states', wiped)
if #names > 0 then return 'more' end
if wipeSources() then return 'more' end
local popped = call('ZPOPMIN', prefix .. 'changed', atOnce)
for index = 1, #popped, 2 do call('DEL', prefix .. 'b:' .. popped[index]) end
if #popped > 0 then return 'more' end
call('UNLINK', entriesKey, outKey, prefix .. 'idle', prefix .. 'left', prefix .. 'settings',
  prefix .. 'windows', prefix .. 'tails', prefix .. 'members', prefix .. 'reopening',
  prefix .. 'reopening-again')
call('HDEL', metaKey, 'reopening', 'pruned')
if meta.wildcards then call('HSET', metaKey, 'wildcards', 'all') end
return 'done'
