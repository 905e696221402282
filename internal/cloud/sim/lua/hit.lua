-- Counts a fault that hits a call of an agent; polls read the faults by themselves.
-- ARGV[4] id of the fault
-- Returns 1 if it was still there. Run twice, it counts twice.
local text = redis.call('HGET', P .. 'faults', ARGV[4])
if not text then return 0 end
local f = cjson.decode(text)
if f.until_ms > 0 and f.until_ms <= now then redis.call('HDEL', P .. 'faults', ARGV[4]); return 0 end
if f.left == 1 then redis.call('HDEL', P .. 'faults', ARGV[4])
elseif f.left > 1 then f.left = f.left - 1; redis.call('HSET', P .. 'faults', ARGV[4], cjson.encode(f)) end
redis.call('HINCRBY', P .. 'hits', f.op .. ' ' .. f.kind, 1)
return 1
