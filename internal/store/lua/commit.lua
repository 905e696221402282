-- Commits decisions of jobs of one shard, each all or nothing: fields, indexes, events, history, due time.
-- Refused unless the fence is the caller's, its claim was not given back, the sequence number is the next one and the
-- statuses are still those the decision was made from. The same commit again is success: go-redis repeats a script whose
-- reply was lost.
-- KEYS[1] due index
-- ARGV    prefix, shards, then per job:
--         id, fence, seq, seq + 1, statuses before, wakes seen by the claim, token or '', keep the claim 0/1,
--         due in ms or '' (unchanged) or 'never', status of the job before, after, '' or, if it ended, how long its logs stay by
--         its own will in ms, else 0, 1 if it begins to close an attempt,
--         number of fields to set s, s x (field, value),
--         of fields to drop d, d x (field, value as read: another one was written by somebody else meanwhile, and stays),
--         of events e, e x event, of past attempts p, p x attempt, of news o, o x news
-- Returns now, then per job 'ok' or 'stale', or with the claim kept {'ok' or 'stale', cancel, preempt, follow, doubt}:
-- what others may have written.
-- Called by Store.Commit.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix, shards = ARGV[1], tonumber(ARGV[2])
local out = {now}
local i = 3
local function list(width)
  local n = ARGV[i] * width
  local from = i + 1
  i = from + n
  return n, from
end
local function push(key, n, from, most)
  if n == 0 then return end
  local length = redis.pcall('RPUSH', key, unpack(ARGV, from, from + n - 1)) -- a damaged history keeps no job from going on
  if type(length) == 'number' and length > most then redis.call('LTRIM', key, -most, -1) end
end
-- commits are the arguments of each job: those that all have, then numbers of fields and so on and where they begin.
local commits, keys = {}, {}
local function also(kind, wanted) if wanted then keys[#keys + 1] = prefix .. kind end end
while i <= #ARGV do
  local at = i
  local id, _, _, _, _, _, token, keep, due, was, is, ended = unpack(ARGV, i, i + 11)
  i = i + 13
  local s, sfrom = list(2)
  local d, dfrom = list(2)
  local e, efrom = list(1)
  local p, pfrom = list(1)
  local o, ofrom = list(1)
  commits[#commits + 1] = {at, s, sfrom, d, dfrom, e, efrom, p, pfrom, o, ofrom}
  local sealed = due == 'never' and is == 'SUCCEEDED'
  also('job:' .. id, true)
  also('ev:' .. id, e > 0)
  also('past:' .. id, p > 0)
  also('ended', ended ~= '')
  also('brief', (tonumber(ended) or 0) > 0)
  also('out:' .. id, sealed)
  also('sec:' .. id, sealed)
  also('lease:' .. id, keep == '0' and token ~= '')
  if o > 0 then tellKeys(prefix, id, keys) end
  if was ~= is then indexKeys(prefix, shards, tonumber(id), keys) end
end
here(keys)
for _, c in ipairs(commits) do
  local at, s, sfrom, d, dfrom, e, efrom, p, pfrom, o, ofrom = unpack(c)
  local id, fence, seq, after, before, wakes, token, keep, due, was, is, ended, closes = unpack(ARGV, at, at + 12)
  local key = prefix .. 'job:' .. id
  local r = redis.call('HMGET', key, 'fence', 'seq', 'states', 'wakes', 'held', 'holder')
  local verdict = 'stale'
  if r[1] == fence and r[2] == after then
    verdict = 'ok'
  elseif r[1] == fence and r[2] == seq and r[3] == before and r[5] ~= '0' then
    verdict = 'ok'
    for j = dfrom, dfrom + d - 1, 2 do
      if redis.call('HGET', key, ARGV[j]) == ARGV[j + 1] then redis.call('HDEL', key, ARGV[j]) end
    end
    redis.call('HSET', key, 'seq', after, 'held', keep == '1' and r[5] or '0', unpack(ARGV, sfrom, sfrom + s - 1))
    if closes == '1' then redis.call('HSET', key, 'shut', now) end
    push(prefix .. 'ev:' .. id, e, efrom, 200)
    push(prefix .. 'past:' .. id, p, pfrom, 100)
    if o > 0 then tell(prefix, id, now, {unpack(ARGV, ofrom, ofrom + o - 1)}) end
    if was ~= is then moved(prefix, shards, tonumber(id), was, is) end
    if ended ~= '' then redis.call('ZADD', prefix .. 'ended', now, id) end
    if (tonumber(ended) or 0) > 0 then redis.call('ZADD', prefix .. 'brief', now + ended, id) end
    if due == 'never' then
      redis.call('ZREM', KEYS[1], id)
      -- Any other ending may be resumed, and news that are still to be told may need them.
      if is == 'SUCCEEDED' and redis.call('EXISTS', prefix .. 'out:' .. id) == 0 then redis.call('DEL', prefix .. 'sec:' .. id) end
    elseif due ~= '' then
      if (r[4] or '0') ~= wakes then due = now end -- somebody woke the job meanwhile
      redis.call('ZADD', KEYS[1], due, id)
    end
    if keep == '0' and r[6] then redis.call('HDEL', key, 'holder') end -- nobody asks for the holder of a claim that is not held
    if keep == '0' and token ~= '' and redis.call('GET', prefix .. 'lease:' .. id) == token then
      redis.call('DEL', prefix .. 'lease:' .. id)
    end
  end
  if keep == '1' then
    local w = redis.call('HMGET', key, 'cancel', 'preempt', 'follow', 'doubt')
    out[#out + 1] = {verdict, w[1] or '', w[2] or '', w[3] or '', w[4] or ''}
  else
    out[#out + 1] = verdict
  end
end
return out
