-- Begins a tick of a shard's watch, unless another epoch owns it, or ends it at once, as chain_end does, if nothing is due: so a
-- shard in which nothing happens costs one call a tick.
-- KEYS[1] chain  KEYS[2] due index
-- ARGV    epoch, lease in ms, ms that what is due may be early, period in ms, grace in ms
-- Returns {1, now, wakes}, {2, ms until the next tick} if it has ended, or {0}.
-- Called by Store.WatchBegin. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'epoch', 'wakes')
if r[1] ~= ARGV[1] then return {0} end
if #redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now + ARGV[3], 'LIMIT', 0, 1) > 0 then
  redis.call('HSET', KEYS[1], 'due', now + ARGV[2])
  return {1, now, r[2] or '0'}
end
local next = next_tick(now, ARGV[4])
redis.call('HSET', KEYS[1], 'due', next + ARGV[5])
return {2, next - now}
