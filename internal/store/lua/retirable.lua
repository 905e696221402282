-- Names jobs of one shard that have ended and are done, those that ended first before others, for retention to take them.
-- KEYS[1] ended index  KEYS[2] due index  KEYS[3] brief index  KEYS[4] index of jobs with news
-- ARGV    prefix, most, most to look at, ms that a job which was resumed rests after its end
-- Returns {number of jobs in the ended index, id, when it ended...}, with '-1' for the end of a job whose logs are due: it goes
-- in any case.
-- Called by Store.Retirable. It only reads. A job that has ended but is not done, since its machines are closing, is in the
-- due index, too; one whose news are still to be told is in theirs. One that was resumed rests for a moment: somebody who took
-- it to the archive after its first end may be slow, and must have given up before its second end is written there.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix, most, look, rest = ARGV[1], tonumber(ARGV[2]), ARGV[3], now - ARGV[4]
local out = {redis.call('ZCARD', KEYS[1])}
local function rests(id)
  local ended = tonumber(redis.call('ZSCORE', KEYS[1], id) or '0')
  return ended > rest and redis.pcall('HEXISTS', prefix .. 'job:' .. id, 'resumed') == 1
end
local function take(list, at)
  for i = 1, #list, 2 do
    if most <= 0 then return end
    if not redis.call('ZSCORE', KEYS[2], list[i]) and not redis.call('ZSCORE', KEYS[4], list[i]) and not rests(list[i]) then
      out[#out + 1] = list[i]
      out[#out + 1] = at or list[i + 1]
      most = most - 1
    end
  end
end
take(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'WITHSCORES', 'LIMIT', 0, look), '-1')
take(redis.call('ZRANGE', KEYS[1], 0, look - 1, 'WITHSCORES'))
return out
