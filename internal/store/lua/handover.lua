-- Gives a claim back unfinished, so that another worker takes the job at once.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] lease  KEYS[4] the shard's chain
-- ARGV    id, fence, token or ''
-- Returns the epoch of the shard's chain, or '' if the claim was lost already.
-- Called by Store.Handover when a worker stops.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[2] then return '' end
redis.call('HINCRBY', KEYS[1], 'fence', 1)
redis.call('HSET', KEYS[1], 'held', 0)
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('HINCRBY', KEYS[4], 'wakes', 1)
if ARGV[3] ~= '' and redis.call('GET', KEYS[3]) == ARGV[3] then redis.call('DEL', KEYS[3]) end
return redis.call('HGET', KEYS[4], 'epoch') or '0'
