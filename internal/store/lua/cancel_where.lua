-- Cancels those of some jobs of one shard that live and, if asked, have a name. A damaged record keeps no other from being
-- cancelled; it has no name.
-- KEYS[1] due index  KEYS[2] the shard's chain
-- ARGV    prefix, cancel as JSON, name to match or '', 1 to match the name, ids...
-- Returns {epoch of the shard's chain, ids...}.
-- Called by Store.CancelWhere. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function name(head)
  local ok, h = pcall(cjson.decode, head)
  return ok and type(h) == 'table' and h.name
end
local keys = {}
for i = 5, #ARGV do keys[#keys + 1] = ARGV[1] .. 'job:' .. ARGV[i] end
here(keys)
local out = {redis.call('HGET', KEYS[2], 'epoch') or '0'}
for i = 5, #ARGV do
  local id = ARGV[i]
  local key = ARGV[1] .. 'job:' .. id
  local r = redis.pcall('HMGET', key, 'step', 'held', 'head')
  if r[1] and r[1] ~= 'done' and (ARGV[4] == '0' or r[3] and name(r[3]) == ARGV[3]) then
    redis.call('HSETNX', key, 'cancel', ARGV[2])
    redis.call('HINCRBY', key, 'wakes', 1)
    if (tonumber(r[2]) or 0) <= now then redis.call('ZADD', KEYS[1], 'LT', now, id) end
    out[#out + 1] = id
  end
end
if #out > 1 then redis.call('HINCRBY', KEYS[2], 'wakes', 1) end
return out
