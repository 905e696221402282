-- Begins an act: refuses what is stale, raises the fence and takes the job's lease, which is a plain redsync lock.
-- Safe to run twice with the same token.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] lease
-- ARGV    id, step, n, token, lease in ms, by how much to raise the fence
-- Returns {'ok', now, hash as a flat list} or {'stale'} or {'busy'}.
-- Called by Store.Begin at the start of every act.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'step', 'n', 'ran', 'held', 'holder')
if r[1] ~= ARGV[2] or r[2] ~= ARGV[3] then return {'stale'} end
local held = (tonumber(r[4]) or 0) > now
if r[3] ~= ARGV[3] then
  if held then return {'busy'} end
  redis.call('HINCRBY', KEYS[1], 'fence', ARGV[6])
  redis.call('HSET', KEYS[1], 'ran', ARGV[3], 'held', now + ARGV[5], 'holder', ARGV[4])
  redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[5])
  redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[1])
elseif not held or r[5] ~= ARGV[4] then
  return {'stale'} -- begun before; if that driver died, the watch makes another act
end -- else: this very call, whose reply was lost
return {'ok', now, redis.call('HGETALL', KEYS[1])}
