-- Prolongs a claim and reads what its holder must know at once.
-- KEYS[1] job  KEYS[2] due index
-- ARGV    id, fence, lease in ms
-- Returns {'ok', cancel or ''} or {'stale'}.
-- Called by the heartbeat of an act, Store.Beat, beside redsync's own extension of the lock. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'fence', 'held', 'cancel')
if r[1] ~= ARGV[2] or (tonumber(r[2]) or 0) <= now then return {'stale'} end
redis.call('HSET', KEYS[1], 'held', now + ARGV[3])
redis.call('ZADD', KEYS[2], 'XX', now + ARGV[3], ARGV[1]) -- a job that is done already stays out of the index
return {'ok', r[3] or ''}
