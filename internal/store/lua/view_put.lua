-- Keeps the view of one region, unless a later look has been kept already.
-- KEYS[1] views (region -> view)  KEYS[2] their times (region -> ms)
-- ARGV    region, time of the look in ms, view
-- Returns 1 if it was kept.
-- Called by Store.PutView. Safe to run twice.
if (tonumber(redis.call('HGET', KEYS[2], ARGV[1])) or 0) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
