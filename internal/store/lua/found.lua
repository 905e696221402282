-- Writes what all workers and clients of a deployment agree on, unless an earlier worker has, and the caps of this one.
-- KEYS[1] the deployment
-- ARGV    cap on launches, cap on live jobs, then names and values of what is fixed; an empty value says nothing
-- Returns 1.
-- Called by Found. Safe to run twice.
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], 'launches', ARGV[1], 'live', ARGV[2])
return 1
