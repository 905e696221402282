-- Takes what is due in one shard. A job at step watch is claimed: its fence is raised, so that whoever held it before
-- can commit no more, and it is due again when the claim ends. A job at another step is only reported, and looked at
-- again after the grace: its act is what drives it.
-- KEYS[1] due index
-- ARGV    prefix, limit, claim in ms, grace in ms for acts
-- Returns now, then per job {id, hash as a flat list} if claimed, or {id, step, n, ran, waits for a slot 0/1}.
-- Called by the watch, Store.Claim.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix = ARGV[1]
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[2])
local out = {now}
for _, id in ipairs(ids) do
  local key = prefix .. 'job:' .. id
  local step = redis.call('HGET', key, 'step')
  if not step or step == 'done' then
    redis.call('ZREM', KEYS[1], id)
  elseif step == 'watch' then
    redis.call('HINCRBY', key, 'fence', 1)
    redis.call('HSET', key, 'held', now + ARGV[3])
    redis.call('ZADD', KEYS[1], now + ARGV[3], id)
    out[#out + 1] = {id, redis.call('HGETALL', key)}
  else
    redis.call('ZADD', KEYS[1], now + ARGV[4], id)
    local r = redis.call('HMGET', key, 'n', 'ran', 'wait')
    local slot = 0
    if r[3] and string.find(r[3], '"launch_slot"', 1, true) then slot = 1 end
    out[#out + 1] = {id, step, r[1], r[2], slot}
  end
end
return out
