-- Takes what is due in one shard. A job at step watch is claimed: its fence is raised, so that whoever held it before
-- can commit no more, and it is due again when the claim ends. A job at another step is only reported, and looked at
-- again after the grace, or when a limit of the user is reached: its act is what drives it. A record that is damaged is
-- reported, left as it is, and looked at again after the pause; it never keeps the others from being taken.
-- A tick comes once a second: what is due before the middle of the next second is taken now, unless somebody holds it,
-- or every wait would be half a second longer than asked for, and those of whole seconds a whole one.
-- KEYS[1] due index
-- ARGV    prefix, limit, claim in ms, grace in ms for acts, pause in ms for damaged records, ms that it may be early, by how
--         much to raise the fences
-- Returns now, then per job {id, 'claimed', fence}, {id, 'act', step, n, ran, waits for a slot 0/1, a limit of the user is
-- reached 0/1} if its act is overdue, or {id, 'damaged', what is wrong}. The caller reads the claimed records by itself:
-- Lua would take longer for that than for all the rest.
-- Called by the watch, Store.Claim. Run twice, it takes what else is due; what the first run took is due again when its
-- claim ends.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix = ARGV[1]
local held, later, pause = now + ARGV[3], now + ARGV[4], now + ARGV[5]
local out = {now}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + ARGV[6], 'LIMIT', 0, ARGV[2])) do
  local key = prefix .. 'job:' .. id
  local r = redis.pcall('HMGET', key, 'step', 'fence', 'held')
  local step, fence = r[1], tonumber(r[2] or nil)
  if step == 'done' or (not step and not r.err and redis.call('EXISTS', key) == 0) then
    redis.call('ZREM', KEYS[1], id)
  elseif not step or not fence then
    redis.call('ZADD', KEYS[1], pause, id)
    out[#out + 1] = {id, 'damaged', r.err or 'it has no step or no fence'}
  elseif (tonumber(r[3] or nil) or 0) > now then
    -- its driver has until then
  elseif step == 'watch' then
    fence = string.format('%.0f', fence + ARGV[7])
    redis.call('HSET', key, 'fence', fence, 'held', held)
    redis.call('ZADD', KEYS[1], held, id)
    out[#out + 1] = {id, 'claimed', fence}
  else
    local a = redis.call('HMGET', key, 'n', 'ran', 'wait', 'limit')
    local slot = a[3] and string.find(a[3], '"launch_slot"', 1, true) and 1 or 0
    local limit = tonumber(a[4] or nil)
    local over = limit and limit <= now + ARGV[6] and 1 or 0
    redis.call('ZADD', KEYS[1], limit and over == 0 and math.min(later, limit) or later, id)
    out[#out + 1] = {id, 'act', step, a[1] or '', a[2] or '', slot, over}
  end
end
return out
