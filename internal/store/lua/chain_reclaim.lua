-- Takes over a chain that has been silent for longer than it may, or begins one that never was.
-- KEYS[1] chain
-- ARGV    grace in ms
-- Returns the new epoch, or 0 if the chain is well.
-- Called by every worker every second for every chain, Store.ChainReclaim. Safe to run twice; the epoch of an answer
-- that was lost has no tick, and is raised again after the grace.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local due = redis.call('HGET', KEYS[1], 'due')
if due and tonumber(due) > now then return 0 end
redis.call('HSET', KEYS[1], 'due', now + ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'epoch', 1)
