-- Takes what is due in one shard. A job at step watch is claimed: its fence is raised, so that whoever held it before
-- can commit no more, and it is due again when the claim ends. A job at another step is only reported, and looked at
-- again after the grace: its act is what drives it. A record that is damaged is reported, left as it is, and looked at
-- again after the pause; it never keeps the others from being taken.
-- A tick comes once a second: what is due before the middle of the next second is taken now, unless somebody holds it,
-- or every wait would be half a second longer than asked for, and those of whole seconds a whole one.
-- KEYS[1] due index
-- ARGV    prefix, limit, claim in ms, grace in ms for acts, pause in ms for damaged records, ms that it may be early
-- Returns now, then per job {id, fence, hash as a flat list} if claimed, {id, step, n, ran, waits for a slot 0/1} if its
-- act is overdue, or {id, what is wrong}.
-- Called by the watch, Store.Claim. Run twice, it takes what else is due; what the first run took is due again when its
-- claim ends.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix = ARGV[1]
local held, later, pause = now + ARGV[3], now + ARGV[4], now + ARGV[5]
local out = {now}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + ARGV[6], 'LIMIT', 0, ARGV[2])) do
  local key = prefix .. 'job:' .. id
  local hash = redis.pcall('HGETALL', key)
  local f = {}
  for i = 1, #hash, 2 do f[hash[i]] = hash[i + 1] end
  local fence = tonumber(f.fence)
  if f.step == 'done' or (#hash == 0 and not hash.err) then
    redis.call('ZREM', KEYS[1], id)
  elseif not f.step or not fence then
    redis.call('ZADD', KEYS[1], pause, id)
    out[#out + 1] = {id, hash.err or 'it has no step or no fence'}
  elseif (tonumber(f.held) or 0) > now then
    -- its driver has until then
  elseif f.step == 'watch' then
    fence = string.format('%.0f', fence + 1)
    redis.call('HSET', key, 'fence', fence, 'held', held)
    redis.call('ZADD', KEYS[1], held, id)
    out[#out + 1] = {id, fence, hash}
  else
    redis.call('ZADD', KEYS[1], later, id)
    local slot = f.wait and string.find(f.wait, '"launch_slot"', 1, true) and 1 or 0
    out[#out + 1] = {id, f.step, f.n or '', f.ran or '', slot}
  end
end
return out
