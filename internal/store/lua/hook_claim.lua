-- Takes the news of a job that are to be told, for a lease. Delivery n of a job is begun once.
-- KEYS[1] hook: how far each receiver has come  KEYS[2] out: the news  KEYS[3] index of jobs with news  KEYS[4] job
-- ARGV    id, n, token, lease in ms
-- Returns {now, number of the first news, hook as a flat list, news}, or {} if this delivery is not to be.
-- Called by Store.ClaimHook. Safe to run twice with the same token.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('EXISTS', KEYS[4]) == 0 then -- the job has left the store, and its news with it
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[1])
  return {}
end
local r = redis.call('HMGET', KEYS[1], 'n', 'held', 'holder', 'base')
local held = (tonumber(r[2] or nil) or 0) > now
if (r[1] or '0') == ARGV[2] then
  if not held or r[3] ~= ARGV[3] then return {} end -- begun before
elseif held or (r[1] or '0') ~= string.format('%.0f', ARGV[2] - 1) then
  return {}
else
  redis.call('HSET', KEYS[1], 'n', ARGV[2], 'held', now + ARGV[4], 'holder', ARGV[3])
  redis.call('ZADD', KEYS[3], now + ARGV[4], ARGV[1])
end
return {now, r[4] or '0', redis.call('HGETALL', KEYS[1]), redis.call('LRANGE', KEYS[2], 0, -1)}
