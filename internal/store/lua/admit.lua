-- Launch slots and the optional cap on live jobs, for the whole fleet. Waiting holds nothing: a job stands in the
-- waiting index, ordered by priority and submission, and is woken when its turn has come.
-- KEYS[1] slots (job -> until)  KEYS[2] waiting (job -> order)  KEYS[3] admitted (live jobs -> since when; only with a cap)
-- ARGV    'hold', launches, live, ttl ms, grant ttl ms, told ms, id, order
--         'join', launches, live, ttl ms, grant ttl ms, told ms, (id, order)...
--         'release', launches, live, ttl ms, grant ttl ms, told ms, id, 1 if the job has ended
--         'back', launches, live, ttl ms, grant ttl ms, told ms, (id, until as it was seen)...
--         'tick', launches, live, ttl ms, grant ttl ms, told ms, quiet ms
-- Returns {1 if id holds a slot, {granted ids...}, {(id, until)... of the slots that nobody has touched for a while}, now};
-- the caller wakes those that were granted one.
-- Called by Store.Hold, Join, Release, TakeBack and AdmissionTick. Safe to run twice; a grant whose answer was lost is told
-- again by the ticks from told ms on, until it is taken or runs out.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local op, launches, live, ttl, grant = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local mine = ARGV[7]
if op == 'hold' then
  if redis.call('ZSCORE', KEYS[1], mine) then
    redis.call('ZADD', KEYS[1], now + ttl, mine)
    return {1, {}, {}, now}
  end
  local order = ARGV[8]
  if live > 0 and redis.call('ZSCORE', KEYS[3], mine) then order = order - 2 ^ 52 end -- it lives already: before those that do not
  redis.call('ZADD', KEYS[2], order, mine)
elseif op == 'join' then
  for i = 7, #ARGV, 2 do
    if not redis.call('ZSCORE', KEYS[1], ARGV[i]) and not redis.call('ZSCORE', KEYS[3], ARGV[i]) then
      redis.call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i])
    end
  end
elseif op == 'release' then
  redis.call('ZREM', KEYS[1], mine)
  redis.call('ZREM', KEYS[2], mine)
  if ARGV[8] == '1' then redis.call('ZREM', KEYS[3], mine) end
elseif op == 'back' then
  for i = 7, #ARGV, 2 do -- one that was renewed meanwhile is in use
    if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i])) == tonumber(ARGV[i + 1]) then redis.call('ZREM', KEYS[1], ARGV[i]) end
  end
end
local got, granted, quiet = 0, {}, {}
if op == 'tick' then -- a slot that was taken lasts longer, unless it is about to run out; then a look does no harm
  local untold = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + grant - ARGV[6], 'WITHSCORES')
  for i = 1, #untold, 2 do
    granted[#granted + 1] = untold[i]
    quiet[#quiet + 1], quiet[#quiet + 2] = untold[i], untold[i + 1]
  end
  for _, v in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now + grant), now + ttl - ARGV[7], 'WITHSCORES')) do
    quiet[#quiet + 1] = v
  end
end
local free = launches - redis.call('ZCARD', KEYS[1])
if free > 0 then
  local room = free
  if live > 0 then room = live - redis.call('ZCARD', KEYS[3]) end
  for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, free - 1)) do
    if free <= 0 then break end
    local admitted = live == 0 or redis.call('ZSCORE', KEYS[3], id)
    if admitted or room > 0 then
      if live > 0 and not admitted then
        redis.call('ZADD', KEYS[3], now, id)
        room = room - 1
      end
      redis.call('ZREM', KEYS[2], id)
      free = free - 1
      if op == 'hold' and id == mine then
        redis.call('ZADD', KEYS[1], now + ttl, id)
        got = 1
      else
        redis.call('ZADD', KEYS[1], now + grant, id)
        granted[#granted + 1] = id
      end
    end
  end
end
return {got, granted, quiet, now}
