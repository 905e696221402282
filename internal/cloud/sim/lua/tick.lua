-- Lets time pass: what has become due happens, capacities change, and the faults are told that hit this call.
-- ARGV[4] JSON: a list of {z: zone, n: notice in ms, c: changes of its capacity as a list of {ms, machines}}
-- ARGV[5] op, "" if no fault is to be looked for, ARGV[6] region ("*" for any), ARGV[7] zones, each between blanks,
-- ARGV[8] a random number
-- Returns now, ms until which capacities have been applied before, 1 if more is due, then kind and delay of each fault.
-- Called before each call of a provider. Run twice, it takes what else is due, and a fault with a count counts twice.
local MOST = 1000 -- that one call lets happen
local due = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, MOST)
for _, event in ipairs(due) do
  local kind, id = string.sub(event, 1, 1), string.sub(event, 3)
  redis.call('ZREM', P .. 'due', event)
  local w = load(id)
  if not w then -- forgotten
  elseif kind == 'b' then
    if w[GONE] == '0' or tonumber(w[RUNS]) < tonumber(w[GONE]) then tell(tonumber(w[RUNS]), 'boot', '', id, w) end
  elseif kind == 'g' then
    gone(id, w)
  elseif kind == 'f' then
    local home = home_of(id)
    redis.call('SET', tombstone(id, w, w[NONCE]), '1', 'PX', TOMBSTONE)
    redis.call('HDEL', P .. 'm:' .. home, id)
    redis.call('HDEL', P .. 'r:' .. home, id)
    redis.call('HDEL', P .. 'u:' .. home, id)
    local rest = {}
    for other in string.gmatch(redis.call('HGET', P .. 'j:' .. home, w[JOB]) or '', '%S+') do
      if other ~= id then rest[#rest + 1] = other end
    end
    if #rest > 0 then redis.call('HSET', P .. 'j:' .. home, w[JOB], table.concat(rest, ' '))
    else redis.call('HDEL', P .. 'j:' .. home, w[JOB]) end
  end
end

local applied = tonumber(redis.call('GET', P .. 'applied') or 0)
if ARGV[4] ~= '' then
  for _, z in ipairs(cjson.decode(ARGV[4])) do
    local least, last
    for _, c in ipairs(z.c) do
      if c[1] <= now and (c[1] > applied or applied == 0) then
        least, last = math.min(least or c[2], c[2]), c[2]
      end
    end
    if last and redis.call('HEXISTS', P .. 'set', z.z) == 0 then
      redis.call('HSET', P .. 'room', z.z, last)
      evict(z.z, least, z.n) -- also what was too much only for a moment that nobody saw
    end
  end
  if now > applied then redis.call('SET', P .. 'applied', num(now)) end
end

local out = {now, applied, #due == MOST and 1 or 0}
if ARGV[5] ~= '' then
  math.randomseed(tonumber(ARGV[8]))
  local all = redis.call('HGETALL', P .. 'faults')
  for i = 1, #all, 2 do
    local id, f = all[i], cjson.decode(all[i + 1])
    if f.until_ms > 0 and f.until_ms <= now then
      redis.call('HDEL', P .. 'faults', id)
    elseif f.op == ARGV[5] and (f.region == '' or ARGV[6] == '*' or f.region == ARGV[6])
      and (f.zone == '' or string.find(ARGV[7], ' ' .. f.zone .. ' ', 1, true)) and math.random() < f.p then
      if f.left == 1 then redis.call('HDEL', P .. 'faults', id)
      elseif f.left > 1 then f.left = f.left - 1; redis.call('HSET', P .. 'faults', id, cjson.encode(f)) end
      redis.call('HINCRBY', P .. 'hits', f.op .. ' ' .. f.kind, 1)
      out[#out + 1], out[#out + 2] = f.kind, f.delay_ms
    end
  end
end
return out
