-- Reads a live tail from an offset.
-- KEYS[1] tail  KEYS[2] offset of the tail's first byte
-- ARGV    offset, most bytes
-- Returns {offset of the first byte returned, bytes, offset of the tail's end}, or {-1, '', -1} if there is no tail.
-- Called by Store.TailRead.
local base = tonumber(redis.call('GET', KEYS[2]) or '-1')
if base < 0 then return {-1, '', -1} end
local from = math.max(tonumber(ARGV[1]), base)
local size = base + redis.call('STRLEN', KEYS[1])
if from >= size or tonumber(ARGV[2]) <= 0 then return {from, '', size} end
return {from, redis.call('GETRANGE', KEYS[1], from - base, from - base + ARGV[2] - 1), size}
