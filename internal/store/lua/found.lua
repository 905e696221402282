-- Writes what all workers and clients of a deployment agree on, unless an earlier worker has, and what this one allows.
-- KEYS[1] the deployment
-- ARGV    cap on launches, cap on live jobs, 1 if no callbacks are run, then names and values of what is fixed; an empty value says nothing
-- Returns 1.
-- Called by Found. Safe to run twice.
for i = 4, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], 'launches', ARGV[1], 'live', ARGV[2], 'nocallbacks', ARGV[3])
return 1
