-- `left` has a record for each window that is behind: from where on its line is in Postgres alone,
-- the round of the feed that began last, and the first that was left since. All about it is said in
-- `LeftLine`, of the ready queue in memory.
local leftKey = prefix .. 'left'
local linePattern = '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)$'

local function parseLine(record)
  local at, seq, round, sinceAt, sinceSeq = string.match(record, linePattern)
  return {
    at = tonumber(at),
    seq = tonumber(seq),
    round = round,
    sinceAt = tonumber(sinceAt),
    sinceSeq = tonumber(sinceSeq),
  }
end

local function exact(number)
  return number and string.format('%.17g', number) or ''
end

local function lineRecord(line)
  return exact(line.at) .. '\31' .. exact(line.seq) .. '\31' .. line.round .. '\31'
    .. exact(line.sinceAt) .. '\31' .. exact(line.sinceSeq)
end

local function nextRound()
  return whole(nextNumber())
end

-- A window has its field, its line or false, and whether that changed.
local function loadLines(windows)
  local fields = {}
  for index, window in ipairs(windows) do fields[index] = window.field end
  for index, record in ipairs(readFields(leftKey, fields)) do
    windows[index].line = record and parseLine(record)
  end
end

local function leave(window, at, seq)
  local line = window.line
  window.hasNewLine = true
  if not line then
    window.line = { at = at, seq = seq, round = nextRound() }
    return
  end
  if isBefore(at, seq, line.at, line.seq) then line.at, line.seq = at, seq end
  if not line.sinceAt or isBefore(at, seq, line.sinceAt, line.sinceSeq) then
    line.sinceAt, line.sinceSeq = at, seq
  end
end

local function beginRound(window)
  local line = window.line
  line.sinceAt, line.sinceSeq, line.round = nil, nil, nextRound()
  window.hasNewLine = true
end

-- Up to here all of it was offered; nil: up to its end.
local function feedUpTo(window, at, seq)
  local line = window.line
  if not at or line.sinceAt and isBefore(line.sinceAt, line.sinceSeq, at, seq) then
    at, seq = line.sinceAt, line.sinceSeq
  end
  beginRound(window)
  line.at, line.seq = at, seq
  if not at then window.line = false end
end

local function saveLines(windows)
  local behind, caughtUp = {}, {}
  for _, window in ipairs(windows) do
    if window.hasNewLine and window.line then
      append(behind, window.field, lineRecord(window.line))
    elseif window.hasNewLine then
      append(caughtUp, window.field)
    end
  end
  callWithAll('HSET', leftKey, behind)
  callWithAll('HDEL', leftKey, caughtUp)
end
