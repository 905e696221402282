-- Commits decisions of jobs of one shard, each all or nothing: fields, indexes, counters, events, history, due time.
-- Refused unless the fence is the caller's, the sequence number is the next one and the statuses are still those the
-- decision was made from. The same commit again is success: go-redis repeats a script whose reply was lost.
-- KEYS[1] due index
-- ARGV    prefix, then per job:
--         id, fence, seq, statuses before, wakes seen, token or '', keep the claim 0/1,
--         due in ms or '' (unchanged) or 'never', counted status before or '', after, ended 0/1,
--         number of fields to set s, s x (field, value), of fields to drop d, d x field,
--         of events e, e x event, of past attempts p, p x attempt
-- Returns now, then per job {'ok' or 'stale', wakes, and with the claim kept what others may write: cancel, preempt, follow, doubt}.
-- Called by Store.Commit.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix = ARGV[1]
local out = {now}
local i = 2
local function list(width)
  local n = tonumber(ARGV[i]) * width
  local from = i + 1
  i = from + n
  return n, from
end
local function push(key, n, from, keep)
  if n == 0 then return end
  redis.call('RPUSH', key, unpack(ARGV, from, from + n - 1))
  redis.call('LTRIM', key, -keep, -1)
end
while i <= #ARGV do
  local id, fence, seq, before, wakes, token, keep = unpack(ARGV, i, i + 6)
  local due, was, is, ended = unpack(ARGV, i + 7, i + 10)
  i = i + 11
  local s, sfrom = list(2)
  local d, dfrom = list(1)
  local e, efrom = list(1)
  local p, pfrom = list(1)
  local key = prefix .. 'job:' .. id
  local r = redis.call('HMGET', key, 'fence', 'seq', 'states', 'wakes')
  local verdict = 'stale'
  if r[1] == fence and r[2] == string.format('%.0f', seq + 1) then
    verdict = 'ok'
  elseif r[1] == fence and r[2] == seq and r[3] == before then
    verdict = 'ok'
    local set = {'seq', string.format('%.0f', seq + 1)}
    if keep == '0' then set[3], set[4] = 'held', '0' end
    for j = sfrom, sfrom + s - 1 do set[#set + 1] = ARGV[j] end
    redis.call('HSET', key, unpack(set))
    if d > 0 then redis.call('HDEL', key, unpack(ARGV, dfrom, dfrom + d - 1)) end
    push(prefix .. 'ev:' .. id, e, efrom, 200)
    push(prefix .. 'past:' .. id, p, pfrom, 100)
    if was ~= is then
      redis.call('HINCRBY', prefix .. 'count', was, -1)
      redis.call('HINCRBY', prefix .. 'count', is, 1)
    end
    if ended == '1' then redis.call('ZADD', prefix .. 'ended', now, id) end
    if due == 'never' then
      redis.call('ZREM', KEYS[1], id)
      redis.call('DEL', prefix .. 'sec:' .. id)
    elseif due ~= '' then
      if r[4] ~= wakes then due = now end -- somebody woke the job meanwhile
      redis.call('ZADD', KEYS[1], due, id)
    end
    if keep == '0' and token ~= '' and redis.call('GET', prefix .. 'lease:' .. id) == token then
      redis.call('DEL', prefix .. 'lease:' .. id)
    end
  end
  local answer = {verdict, r[4] or '0'}
  if keep == '1' then
    for j, v in ipairs(redis.call('HMGET', key, 'cancel', 'preempt', 'follow', 'doubt')) do answer[2 + j] = v or '' end
  end
  out[#out + 1] = answer
end
return out
