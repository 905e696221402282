-- Ends a tick of a chain and says when the next one is due.
-- KEYS[1] chain
-- ARGV    epoch, wakes seen at the begin, period in ms, grace in ms
-- Returns {1, ms until the next tick; 0 if somebody woke the chain meanwhile} or {0} if another epoch owns it.
-- Called by Store.ChainEnd. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'epoch', 'wakes')
if r[1] ~= ARGV[1] then return {0} end
if (r[2] or '0') ~= ARGV[2] then
  redis.call('HSET', KEYS[1], 'due', now + ARGV[4])
  return {1, 0}
end
local next = next_tick(now, ARGV[3])
redis.call('HSET', KEYS[1], 'due', next + ARGV[4])
return {1, next - now}
