-- Gives back the claim on a damaged record and puts off the next look at it.
-- KEYS[1] job  KEYS[2] due index
-- ARGV    id, fence of the claim, pause in ms
-- Returns 1, or 0 if the claim is not the caller's any more: whoever mended the record may drive the job by now.
-- Called by the watch and at the begin of an act, Store.park. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.pcall('HMGET', KEYS[1], 'fence', 'held')
if r[1] ~= ARGV[2] or r[2] == '0' then return 0 end
redis.call('HSET', KEYS[1], 'held', 0)
redis.call('ZADD', KEYS[2], 'XX', now + ARGV[3], ARGV[1])
return 1
