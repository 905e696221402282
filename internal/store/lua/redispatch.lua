-- Makes the next act of a job: the one before has ended its wait, died, or was lost by the queue.
-- KEYS[1] job  KEYS[2] due index
-- ARGV    id, step, n, ran (as they were read), grace in ms
-- Returns the number of the act that must exist now, or 0 if it was begun already or somebody drives the job.
-- Called by the watch, Store.Redispatch. Safe to run twice: as long as the new act has not begun, its number is the
-- answer; to enqueue it once more is harmless.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local r = redis.call('HMGET', KEYS[1], 'step', 'n', 'ran', 'held')
if r[1] ~= ARGV[2] or r[3] ~= ARGV[4] or (tonumber(r[4]) or 0) > now then return 0 end
local new = string.format('%.0f', ARGV[3] + 1)
if r[2] == new then return tonumber(new) end
if r[2] ~= ARGV[3] then return 0 end
redis.call('HINCRBY', KEYS[1], 'fence', 1)
redis.call('ZADD', KEYS[2], now + ARGV[5], ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'n', 1)
