-- Adds a piece of a log to its live tail, which is bounded: what is older is in the archive. Safe to run twice: a piece
-- that is there already is not added again.
-- KEYS[1] tail  KEYS[2] offset of the tail's first byte  KEYS[3] marks of 16 bytes that begin with their offset
-- ARGV    offset of the piece, piece, most bytes to keep, seconds to live, marks of the piece
-- Returns the offset of the end.
-- Called by Store.TailAppend.
local function offset(marks, at)
  local n = 0
  for i = at, at + 7 do n = n * 256 + string.byte(marks, i) end
  return n
end
local off, max = tonumber(ARGV[1]), tonumber(ARGV[3])
local base = tonumber(redis.call('GET', KEYS[2]) or '-1')
local len = redis.call('STRLEN', KEYS[1])
if base < 0 or off > base + len then -- nothing there, or a gap: begin anew
  redis.call('SET', KEYS[1], ARGV[2])
  redis.call('SET', KEYS[3], ARGV[5])
  base, len = off, #ARGV[2]
else
  local skip = base + len - off
  if skip < #ARGV[2] then
    len = redis.call('APPEND', KEYS[1], string.sub(ARGV[2], skip + 1))
    local at = 1 -- of the first mark that is not there already
    while at < #ARGV[5] and offset(ARGV[5], at) < off + skip do at = at + 16 end
    redis.call('APPEND', KEYS[3], string.sub(ARGV[5], at))
  end
end
if len > max then -- cut to half, so that not every piece cuts
  local cut = len - math.floor(max / 2)
  redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], cut, -1))
  base, len = base + cut, len - cut
  local marks = redis.call('GET', KEYS[3]) or ''
  local at = 1
  while at < #marks and offset(marks, at) < base do at = at + 16 end
  redis.call('SET', KEYS[3], string.sub(marks, at))
end
local most = 65536 -- bytes of marks: a log of one byte a second has as many marks as bytes
if redis.call('STRLEN', KEYS[3]) > most then
  redis.call('SET', KEYS[3], redis.call('GETRANGE', KEYS[3], -most / 2, -1))
end
redis.call('SET', KEYS[2], string.format('%.0f', base), 'EX', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', KEYS[3], ARGV[4])
return base + len
