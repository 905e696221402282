-- Writes the records of new jobs of one shard, with their index entries.
-- Safe to run twice: a job that exists is left alone. One with another nonce is another job: on a cluster, the node that counts
-- may lose its last second, and give ids again that other nodes know.
-- KEYS[1] due index of the shard  KEYS[2] the ids that were written of a submission with a key; else absent
-- ARGV    prefix, shards, first due in ms from now, how long KEYS[2] is kept in s, number of fields per job f, nonce, then per job:
--         id, request, sealed secrets or '', submitted (ms), user, name in lower case, first news or '',
--         f x (field, value)
-- Returns the ids that other jobs have.
-- Called by Store.Submit.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix, shards, first, life, f = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local out = {}
local nonce = '"nonce":"' .. ARGV[6] .. '"'
local made, wrote = KEYS[2], 0
local width = 7 + 2 * f
local keys, block = {}, nil
for i = 7, #ARGV, width do
  local id = ARGV[i]
  keys[#keys + 1] = prefix .. 'job:' .. id
  keys[#keys + 1] = prefix .. 'req:' .. id
  if ARGV[i + 2] ~= '' then keys[#keys + 1] = prefix .. 'sec:' .. id end
  if ARGV[i + 6] ~= '' then tellKeys(prefix, id, keys) end
  if placed(tonumber(id), shards) ~= block then -- ids come in order: most are in the block of the one before
    block = placed(tonumber(id), shards)
    indexKeys(prefix, shards, tonumber(id), keys)
  end
end
here(keys)
for i = 7, #ARGV, width do
  local id = ARGV[i]
  local key = prefix .. 'job:' .. id
  -- A job that is not there may have run already, and be in the archive.
  local ours = made and redis.call('SISMEMBER', made, id) == 1
  if not ours and redis.call('EXISTS', key) == 1 then
    local head = redis.pcall('HGET', key, 'head') -- an error for a damaged record
    if type(head) ~= 'string' or not string.find(head, nonce, 1, true) then out[#out + 1] = id end
  elseif not ours then
    if made then redis.call('SADD', made, id) end
    redis.call('HSET', key, unpack(ARGV, i + 7, i + 6 + 2 * f))
    redis.call('SET', prefix .. 'req:' .. id, ARGV[i + 1])
    if ARGV[i + 2] ~= '' then redis.call('SET', prefix .. 'sec:' .. id, ARGV[i + 2]) end
    put(prefix, shards, tonumber(id), 'PENDING', tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5])
    if ARGV[i + 6] ~= '' then tell(prefix, id, now, {ARGV[i + 6]}) end
    redis.call('ZADD', KEYS[1], now + first, id)
    wrote = wrote + 1
  end
end
if wrote > 0 then count(prefix, 'PENDING', wrote) end
if made and wrote > 0 then redis.call('EXPIRE', made, life) end
return out
