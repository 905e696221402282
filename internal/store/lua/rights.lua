-- Tells which commands the user may not run inside of a script. Each is run on a key that is made and removed here; what it
-- answers does not matter, only whether it is refused.
-- KEYS[1] a key that is there for nothing else
-- ARGV    commands in lower case, "command|subcommand" for one of several
-- Returns those that are refused. One that is not in the table is not tried.
-- Called by Store.Found's preflight and after a script was refused a right.
local k = KEYS[1]
local calls = {
  append = {k, ''}, del = {k}, exists = {k}, expire = {k, 1}, expireat = {k, 1}, get = {k}, getbit = {k, 0}, getrange = {k, 0, 0}, hdel = {k, 'f'}, hexists = {k, 'f'},
  hget = {k, 'f'}, hgetall = {k}, hincrby = {k, 'f', 1}, hmget = {k, 'f'}, hset = {k, 'f', 1}, hsetnx = {k, 'f', 1}, hvals = {k}, incr = {k}, llen = {k},
  lpush = {k, 1}, lrange = {k, 0, 0}, lrem = {k, 0, 1}, ltrim = {k, 0, 0}, memory = {'usage', k}, pexpire = {k, 1}, rpoplpush = {k, k}, rpush = {k, 1}, sadd = {k, 1},
  set = {k, 1}, setex = {k, 1, 1}, setrange = {k, 0, 1}, sismember = {k, 1}, smembers = {k}, srem = {k, 1}, strlen = {k}, time = {}, zadd = {k, 1, 1}, zcard = {k},
  zmscore = {k, 1}, zrange = {k, 0, 0}, zrank = {k, 1}, zrangebyscore = {k, 0, 0}, zrem = {k, 1}, zremrangebyrank = {k, 0, 0}, zremrangebyscore = {k, 0, 0},
  zrevrange = {k, 0, 0}, zrevrangebyscore = {k, 0, 0}, zscore = {k, 1},
}
local lacks = {}
for _, name in ipairs(ARGV) do
  local command = string.match(name, '^[a-z]+')
  local said = ''
  if calls[command] then
    local ok, r = pcall(redis.pcall, command, unpack(calls[command]))
    said = not ok and tostring(r) or type(r) == 'table' and r.err or ''
  end
  if string.find(said, 'run this command', 1, true) or string.find(said, 'permissions to run', 1, true) then
    lacks[#lacks + 1] = name
  end
end
redis.pcall('del', k)
return lacks
