-- Names jobs of one shard that have ended and are done, those that ended first before others, for retention to take them.
-- KEYS[1] ended index  KEYS[2] due index  KEYS[3] brief index  KEYS[4] index of jobs with news
-- ARGV    most, most to look at, behind how many entries to begin
-- Returns {number of jobs in the ended index, 1 if there is more to look at, id, when it ended...}, with '-1' for the end of a
-- job whose logs are due: it goes in any case.
-- Called by Store.Retirable. It only reads. A job that has ended but is not done, since its machines are closing, is in the
-- due index, too; one whose news are still to be told is in theirs.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local most, look, from = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local out = {redis.call('ZCARD', KEYS[1]), 0}
local function take(list, at)
  if #list == 2 * look then out[2] = 1 end
  for i = 1, #list, 2 do
    if most <= 0 then return end
    if not redis.call('ZSCORE', KEYS[2], list[i]) and not redis.call('ZSCORE', KEYS[4], list[i]) then
      out[#out + 1] = list[i]
      out[#out + 1] = at or list[i + 1]
      most = most - 1
    end
  end
end
take(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'WITHSCORES', 'LIMIT', from, look), '-1')
take(redis.call('ZRANGE', KEYS[1], from, from + look - 1, 'WITHSCORES'))
return out
