-- Writes how far one receiver of a job's news has come, and prolongs the claim.
-- KEYS[1] hook  KEYS[2] index of jobs with news  KEYS[3] history
-- ARGV    id, token, lease in ms, receiver, number of its next news, the rest of its state, note for the history or ''
-- Returns 1, or 0 if the claim is somebody else's.
-- Called by Store.SaveHook. Safe to run twice: a state that is there already leaves no second note.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local id, token, lease, receiver, pos, state, note = unpack(ARGV)
local r = redis.call('HMGET', KEYS[1], 'holder', 'held', 'p:' .. receiver, 's:' .. receiver)
if r[1] ~= token or (tonumber(r[2] or nil) or 0) <= now then return 0 end
redis.call('HSET', KEYS[1], 'held', now + lease)
redis.call('ZADD', KEYS[2], now + lease, id)
if r[3] == pos and r[4] == state then return 1 end
redis.call('HSET', KEYS[1], 'p:' .. receiver, pos, 's:' .. receiver, state)
if note ~= '' then
  redis.call('RPUSH', KEYS[3], note)
  redis.call('LTRIM', KEYS[3], -200, -1)
end
return 1
