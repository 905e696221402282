-- Makes a job due now and, if asked, writes a user's wish into its record. A job that is being driven is not
-- taken from its driver: the driver's commit sees that it was woken and makes it due at once.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] the shard's chain
-- ARGV    id, '*' or the life that the wish is for (the token of the call that let the job go again last, or ''), then field, value, mode ('set', 'once', 'max') triples
-- Returns {epoch of the shard's chain, 1 if there is such a job that is not done, 1 if there is such a job}.
-- Called by Store.Wake, Cancel, Preempt, Follow and Doubt. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'step', 'held')
local epoch = redis.call('HGET', KEYS[3], 'epoch') or '0'
if not r[1] then return {epoch, 0, redis.call('EXISTS', KEYS[1])} end
if r[1] == 'done' then return {epoch, 0, 1} end
-- a cancel that is repeated, since its reply was lost, when the job was resumed meanwhile
if ARGV[2] ~= '*' and (redis.call('HGET', KEYS[1], 'resumed') or '') ~= ARGV[2] then return {epoch, 0, 1} end
for i = 3, #ARGV, 3 do
  local value = ARGV[i + 1]
  if value == 'now' then value = now end
  if ARGV[i + 2] == 'set' then
    redis.call('HSET', KEYS[1], ARGV[i], value)
  elseif ARGV[i + 2] == 'once' then
    redis.call('HSETNX', KEYS[1], ARGV[i], value)
  elseif (tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or 0) or 0) < tonumber(value) then
    redis.call('HSET', KEYS[1], ARGV[i], value)
  end
end
redis.call('HINCRBY', KEYS[1], 'wakes', 1)
if (tonumber(r[2]) or 0) <= now then redis.call('ZADD', KEYS[2], 'LT', now, ARGV[1]) end
redis.call('HINCRBY', KEYS[3], 'wakes', 1)
return {epoch, 1, 1}
