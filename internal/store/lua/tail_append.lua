-- Adds a piece of a log to its live tail, which is bounded: what is older is in the archive. Safe to run twice: a piece
-- that is there already is not added again.
-- KEYS[1] tail  KEYS[2] offset of the tail's first byte
-- ARGV    offset of the piece, piece, most bytes to keep, seconds to live
-- Returns the offset of the end.
-- Called by Store.TailAppend.
local off, max = tonumber(ARGV[1]), tonumber(ARGV[3])
local base = tonumber(redis.call('GET', KEYS[2]) or '-1')
local len = redis.call('STRLEN', KEYS[1])
if base < 0 or off > base + len then -- nothing there, or a gap: begin anew
  redis.call('SET', KEYS[1], ARGV[2])
  base, len = off, #ARGV[2]
else
  local skip = base + len - off
  if skip < #ARGV[2] then len = redis.call('APPEND', KEYS[1], string.sub(ARGV[2], skip + 1)) end
end
if len > max then -- cut to half, so that not every piece cuts
  local cut = len - math.floor(max / 2)
  redis.call('SET', KEYS[1], redis.call('GETRANGE', KEYS[1], cut, -1))
  base, len = base + cut, len - cut
end
redis.call('SET', KEYS[2], string.format('%.0f', base), 'EX', ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return base + len
