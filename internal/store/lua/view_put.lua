-- Keeps parts of the view of one region, and when it was looked at, unless a later look has been kept already. A block that
-- another look has changed since it was read is left alone, and then the time of the view is, too.
-- KEYS[1] views (region -> view)  KEYS[2] their times (region -> ms)  KEYS[3] blocks (number -> machines)
-- KEYS[4] their marks (number -> marks)
-- ARGV    region, time of the look in ms, view or '' if more blocks come, then per block its number, the marks that it had, the
--         marks that it gets or '' if it goes, its machines
-- Returns how many blocks were left alone, or -1 if a later look is there.
-- Called by Store.PutView. Safe to run twice.
if (tonumber(redis.call('HGET', KEYS[2], ARGV[1])) or 0) > tonumber(ARGV[2]) then return -1 end
local refused = 0
for i = 4, #ARGV, 4 do
  local marks = redis.call('HGET', KEYS[4], ARGV[i]) or ''
  if marks ~= ARGV[i + 1] and marks ~= ARGV[i + 2] then
    refused = refused + 1
  elseif ARGV[i + 2] == '' then
    redis.call('HDEL', KEYS[3], ARGV[i])
    redis.call('HDEL', KEYS[4], ARGV[i])
  else
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 3])
    redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 2])
  end
end
if ARGV[3] ~= '' and refused == 0 then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return refused
