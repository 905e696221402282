-- Begins a tick of a chain, unless another epoch owns it.
-- KEYS[1] chain
-- ARGV    epoch, lease in ms
-- Returns {1, now, wakes} or {0}.
-- Called by Store.ChainBegin. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'epoch', 'wakes')
if r[1] ~= ARGV[1] then return {0} end
redis.call('HSET', KEYS[1], 'due', now + ARGV[2])
return {1, now, r[2] or '0'}
