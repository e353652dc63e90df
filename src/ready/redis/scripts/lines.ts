/**
 * `left` has a record for each window that is behind: from where on its line is in Postgres alone,
 * the round of the feed that began last, and the first that was left since. All about it is said in
 * `LeftLine`, of the ready queue in memory.
 */
export const lines = String.raw`
local leftKey = prefix .. 'left'
local linePattern = '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)$'

local function isBefore(at, seq, otherAt, otherSeq)
  if at ~= otherAt then return at < otherAt end
  return seq < otherSeq
end

local function parseLine(record)
  local at, seq, round, sinceAt, sinceSeq = string.match(record or '', linePattern)
  if not at then return nil end
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

-- A window has its field, its line or nil, and whether that changed.
local function loadLines(windows)
  for first = 1, #windows, chunk do
    local last = math.min(first + chunk - 1, #windows)
    local fields = {}
    for index = first, last do fields[#fields + 1] = windows[index].field end
    for index, record in ipairs(call('HMGET', leftKey, unpack(fields))) do
      windows[first + index - 1].line = parseLine(record)
    end
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
  if not at then window.line = nil end
end

local function saveLines(windows)
  for _, window in ipairs(windows) do
    if window.hasNewLine and window.line then
      call('HSET', leftKey, window.field, lineRecord(window.line))
    elseif window.hasNewLine then
      call('HDEL', leftKey, window.field)
    end
  end
end
`;
