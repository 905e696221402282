-- Lets a job that is done go again: writes the record of its second life, unless it has changed since it was read. The fence
-- is raised and so is the number of the act that must exist, so nothing that was decided in the first life can touch it.
-- KEYS[1] job  KEYS[2] due index  KEYS[3] the shard's chain
-- ARGV    prefix, shards, id, token of this call, fence, seq, statuses (as they were read), status of the job before, after,
--         number of fields to set s, s x (field, value), of fields to drop d, d x field, of events e, e x event,
--         of news o, o x news
-- Returns {1 if it goes again, epoch of the shard's chain}.
-- Called by Store.Resume. Safe to run twice: the token tells this very call, whose reply was lost, from another person's.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix, shards, id, token, fence, seq, states, was, is = unpack(ARGV, 1, 9)
local epoch = redis.call('HGET', KEYS[3], 'epoch') or '0'
local i = 10
local function list(width)
  local n = ARGV[i] * width
  local from = i + 1
  i = from + n
  return n, from
end
local s, sfrom = list(2)
local d, dfrom = list(1)
local e, efrom = list(1)
local o, ofrom = list(1)
local r = redis.call('HMGET', KEYS[1], 'step', 'fence', 'seq', 'states', 'resumed')
if r[5] == token then return {1, epoch} end
if r[1] ~= 'done' or r[2] ~= fence or r[3] ~= seq or r[4] ~= states then return {0, epoch} end
local keys = {prefix .. 'ev:' .. id, prefix .. 'ended', prefix .. 'brief'}
if o > 0 then tellKeys(prefix, id, keys) end
indexKeys(prefix, tonumber(shards), tonumber(id), keys)
here(keys)
redis.call('HSET', KEYS[1], 'fence', string.format('%.0f', fence + 1), 'seq', string.format('%.0f', seq + 1),
  'held', '0', 'resumed', token, unpack(ARGV, sfrom, sfrom + s - 1))
redis.call('HDEL', KEYS[1], unpack(ARGV, dfrom, dfrom + d - 1))
redis.pcall('RPUSH', prefix .. 'ev:' .. id, unpack(ARGV, efrom, efrom + e - 1))
redis.pcall('LTRIM', prefix .. 'ev:' .. id, -200, -1)
if o > 0 then tell(prefix, id, now, {unpack(ARGV, ofrom, ofrom + o - 1)}) end
moved(prefix, tonumber(shards), tonumber(id), was, is)
redis.call('ZREM', prefix .. 'ended', id)
redis.call('ZREM', prefix .. 'brief', id)
redis.call('ZADD', KEYS[2], now, id)
redis.call('HINCRBY', KEYS[3], 'wakes', 1)
return {1, epoch}
