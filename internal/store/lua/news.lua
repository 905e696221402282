-- tellKeys appends the keys of what tell may touch for a job.
local function tellKeys(prefix, id, keys)
  for _, key in ipairs({'hooks', 'out:' .. id, 'hook:' .. id}) do keys[#keys + 1] = prefix .. key end
end

-- Puts news of a job, which are objects of JSON, into its outbox, which keeps the last 200, with the time at which they are kept,
-- and makes their delivery due. An outbox that is damaged loses
-- them: it must not keep the job, and those that are committed with it, from going on.
local function tell(prefix, id, now, news)
  local out = prefix .. 'out:' .. id
  for i, n in ipairs(news) do news[i] = '{"kept_at":' .. now .. ',' .. string.sub(n, 2) end
  redis.pcall('RPUSH', out, unpack(news))
  local over = (tonumber(redis.pcall('LLEN', out)) or 0) - 200
  if over > 0 then
    redis.call('LTRIM', out, over, -1)
    redis.pcall('HINCRBY', prefix .. 'hook:' .. id, 'base', over)
  end
  redis.call('ZADD', prefix .. 'hooks', 'LT', now, id)
end
