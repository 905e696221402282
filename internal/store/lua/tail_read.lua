-- Reads a live tail from an offset.
-- KEYS[1] tail  KEYS[2] offset of the tail's first byte  KEYS[3] marks of 16 bytes that begin with their offset
-- ARGV    offset, most bytes
-- Returns {offset of the first byte returned, bytes, offset of the tail's end, marks from the first byte to behind the
-- last}, or {-1, '', -1, ''} if there is no tail.
-- Called by Store.TailRead.
local function offset(marks, at)
  local n = 0
  for i = at, at + 7 do n = n * 256 + string.byte(marks, i) end
  return n
end
local base = tonumber(redis.call('GET', KEYS[2]) or '-1')
if base < 0 then return {-1, '', -1, ''} end
local from = math.max(tonumber(ARGV[1]), base)
local size = base + redis.call('STRLEN', KEYS[1])
if from >= size or tonumber(ARGV[2]) <= 0 then return {from, '', size, ''} end
local piece = redis.call('GETRANGE', KEYS[1], from - base, from - base + ARGV[2] - 1)
local marks = redis.call('GET', KEYS[3]) or ''
local first = 1
while first < #marks and offset(marks, first) < from do first = first + 16 end
local last = first
while last < #marks and offset(marks, last) <= from + #piece do last = last + 16 end
return {from, piece, size, string.sub(marks, first, last + 15)}
