-- Gives the claim on a job's news back: drops what every receiver has heard, and says when the next delivery is due. Secrets
-- that were kept for the last news of a job that has succeeded go with it.
-- KEYS[1] hook  KEYS[2] out  KEYS[3] index of jobs with news  KEYS[4] job  KEYS[5] sealed secrets
-- ARGV    id, token, number after the last news that the claim saw, due in ms (of no meaning if all was heard), receivers...;
--         none if nobody knows who they are: then all is kept
-- Returns 1, or 0 if the claim is somebody else's.
-- Called by Store.ReleaseHook. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local id, token, seen, due = unpack(ARGV, 1, 4)
local r = redis.call('HMGET', KEYS[1], 'holder', 'held', 'base')
if r[1] ~= token then return 0 end
if r[2] == '0' then return 1 end -- this very call, whose reply was lost
local base = tonumber(r[3] or nil) or 0
local last = base + redis.call('LLEN', KEYS[2])
local heard = ARGV[5] and last or base
for i = 5, #ARGV do
  heard = math.min(heard, math.max(base, tonumber(redis.call('HGET', KEYS[1], 'p:' .. ARGV[i]) or nil) or 0))
end
if heard > base then
  redis.call('LTRIM', KEYS[2], heard - base, -1)
  redis.call('HSET', KEYS[1], 'base', string.format('%.0f', heard))
end
redis.call('HSET', KEYS[1], 'held', '0')
if heard >= last then
  redis.call('ZREM', KEYS[3], id)
  local j = redis.call('HMGET', KEYS[4], 'step', 'states')
  if j[1] == 'done' and j[2] and not string.find(string.gsub(j[2], 'SUCCEEDED', ''), '%a') then redis.call('DEL', KEYS[5]) end
elseif last > tonumber(seen) then
  redis.call('ZADD', KEYS[3], now, id)
else
  redis.call('ZADD', KEYS[3], due, id)
end
return 1
