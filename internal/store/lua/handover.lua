-- Gives a claim back unfinished, so that another worker takes the job at once.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] lease  KEYS[4] the shard's chain
-- ARGV    id, fence, token or ''
-- Returns the epoch of the shard's chain, or '' if the claim was lost or given back already.
-- Called by Store.Handover when a worker stops. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'fence', 'held')
local epoch = redis.call('HGET', KEYS[4], 'epoch') or '0'
if r[1] == string.format('%.0f', ARGV[2] + 1) and r[2] == '0' then return epoch end -- this very call, whose reply was lost
if r[1] ~= ARGV[2] or r[2] == '0' then return '' end
redis.call('HINCRBY', KEYS[1], 'fence', 1)
redis.call('HSET', KEYS[1], 'held', 0)
redis.call('ZADD', KEYS[2], 'XX', now, ARGV[1]) -- a job that is done already stays out of the index
redis.call('HINCRBY', KEYS[4], 'wakes', 1)
if ARGV[3] ~= '' and redis.call('GET', KEYS[3]) == ARGV[3] then redis.call('DEL', KEYS[3]) end
return epoch
