-- Calls a job whose turn has come: makes the act that it needs next, without a tick in between. One that is being driven, or
-- that no act drives, is woken instead; one that has ended or is gone is left alone.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] the shard's chain
-- ARGV    id, grace in ms until the act must have begun
-- Returns {'act', step, n, priority} if act n must exist now, {'woken', epoch of the shard's chain}, or {'none'}.
-- Called by Store.Call. Safe to run twice: as long as the act has not begun, its number stays.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.pcall('HMGET', KEYS[1], 'step', 'n', 'ran', 'held', 'head')
local step = r[1]
if not step or step == 'done' then return {'none'} end
local held = (tonumber(r[4]) or 0) > now
if held or step == 'watch' then
  redis.call('HINCRBY', KEYS[1], 'wakes', 1)
  if not held then redis.call('ZADD', KEYS[2], 'XX', 'LT', now, ARGV[1]) end
  redis.call('HINCRBY', KEYS[3], 'wakes', 1)
  return {'woken', redis.call('HGET', KEYS[3], 'epoch') or '0'}
end
local n = r[2]
if n == r[3] then -- the last act has ended
  redis.call('HINCRBY', KEYS[1], 'fence', 1)
  n = redis.call('HINCRBY', KEYS[1], 'n', 1)
end
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
return {'act', step, n, priorityOf(r[5])}
