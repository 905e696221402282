-- Frees an idempotency key, if it is still bound to these ids: they are those of other jobs.
-- KEYS[1] key
-- ARGV    what it was bound to
-- Returns 1 if it was.
-- Called by Store.Submit. Safe to run twice: what somebody has bound anew stays.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
