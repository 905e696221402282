-- Changes the public key that secrets are sealed for, if it is the one that the caller knows.
-- KEYS[1] the deployment
-- ARGV    the key that is to be replaced, the new one
-- Returns 1 if the new one is in use afterwards, also when it was before.
-- Called by Store.Rotate. Safe to run twice.
local now = redis.call('HGET', KEYS[1], 'recipient') or ''
if now == ARGV[2] then return 1 end
if now ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'recipient', ARGV[2])
return 1
