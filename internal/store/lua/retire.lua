-- Takes a job out of the store, with all that is kept of it, unless it is not done or has changed since it was read: it may
-- have been resumed. What is deleted was written to the archive before.
-- KEYS[1] job  KEYS[2] ended index  KEYS[3] brief index  KEYS[4] blocks of the index  KEYS[5] index of jobs with news
-- KEYS[6] events  KEYS[7] past attempts  KEYS[8...] what else is kept of it
-- ARGV    id, seq, statuses, number of events, of past attempts (as they were read), prefix, shards, status of the job
-- Returns 1 if the job is gone, 0 if it stays.
-- Called by Store.Retire. Safe to run twice: a job that is gone is gone.
-- Events come from commits and resumes, which raise seq, and from deliveries of news, during which the job is in their index.
local r = redis.call('HMGET', KEYS[1], 'step', 'seq', 'states')
if not r[1] and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  return 1
end
if r[1] ~= 'done' or r[2] ~= ARGV[2] or r[3] ~= ARGV[3] or redis.call('ZSCORE', KEYS[5], ARGV[1]) then return 0 end
if redis.call('LLEN', KEYS[6]) ~= tonumber(ARGV[4]) or redis.call('LLEN', KEYS[7]) ~= tonumber(ARGV[5]) then return 0 end
local keys = {}
indexKeys(ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[1]), keys)
here(keys)
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
forgotten(ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[1]), ARGV[8])
redis.call('DEL', KEYS[1], unpack(KEYS, 6))
return 1
