-- Writes the records of new jobs of one shard, with their index entries and first event.
-- Safe to run twice: a job that exists is left alone.
-- KEYS[1] due index of the shard  KEYS[2] the ids that were written of a submission with a key; else absent
-- ARGV    prefix, first due in ms from now, how long KEYS[2] is kept in s, number of fields per job f, then per job:
--         id, request, sealed secrets or '', first event, entry in the status index, first news or '', f x (field, value)
-- Returns the ids that were new.
-- Called by Store.Submit.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix, first, life, f = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local out = {}
local made = KEYS[2]
local i = 5
while i <= #ARGV do
  local id = ARGV[i]
  local key = prefix .. 'job:' .. id
  -- A job that is not there may have run already, and be in the archive.
  if redis.call('EXISTS', key) == 0 and not (made and redis.call('SISMEMBER', made, id) == 1) then
    if made then redis.call('SADD', made, id) end
    redis.call('HSET', key, unpack(ARGV, i + 6, i + 5 + 2 * f))
    redis.call('SET', prefix .. 'req:' .. id, ARGV[i + 1])
    if ARGV[i + 2] ~= '' then redis.call('SET', prefix .. 'sec:' .. id, ARGV[i + 2]) end
    redis.call('RPUSH', prefix .. 'ev:' .. id, ARGV[i + 3])
    redis.call('ZADD', prefix .. 'st:PENDING', id, ARGV[i + 4])
    if ARGV[i + 5] ~= '' then tell(prefix, id, now, {ARGV[i + 5]}) end
    redis.call('ZADD', KEYS[1], now + first, id)
    out[#out + 1] = id
  end
  i = i + 6 + 2 * f
end
if made and #out > 0 then redis.call('EXPIRE', made, life) end
return out
