-- Puts news of a job into its outbox, which keeps the last 200, and makes their delivery due.
local function tell(prefix, id, now, news)
  local out = prefix .. 'out:' .. id
  redis.call('RPUSH', out, unpack(news))
  local over = redis.call('LLEN', out) - 200
  if over > 0 then
    redis.call('LTRIM', out, over, -1)
    redis.call('HINCRBY', prefix .. 'hook:' .. id, 'base', over)
  end
  redis.call('ZADD', prefix .. 'hooks', 'LT', now, id)
end
