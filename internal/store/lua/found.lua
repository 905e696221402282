-- Writes what all workers and clients of a deployment agree on, unless an earlier worker has, and what this one allows.
-- KEYS[1] the deployment  KEYS[2] the workers
-- ARGV    cap on launches, cap on live jobs, 1 if no callbacks are run, number of replicas to wait for, servers of the lease, ms
--         that no worker may have reported before those are changed, then names and values of what is fixed; an empty value
--         says nothing
-- Returns 1.
-- Called by Found. Safe to run twice.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
for i = 7, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], 'launches', ARGV[1], 'live', ARGV[2], 'nocallbacks', ARGV[3], 'replicas', ARGV[4])
if (redis.call('HGET', KEYS[1], 'leases') or '') ~= ARGV[5] then
  local serving = false -- a worker that refuses to serve reports as well, and does not count
  for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
    local ok, w = pcall(cjson.decode, text)
    serving = serving or ok and type(w) == 'table' and w.ready and now - (tonumber(w.seen_at) or 0) < tonumber(ARGV[6])
  end
  if not serving then redis.call('HSET', KEYS[1], 'leases', ARGV[5]) end
end
return 1
