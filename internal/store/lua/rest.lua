-- Puts off the next looks at calm jobs that were found as they were. One that was woken or claimed since it was taken is
-- due when that says.
-- KEYS[1] due index
-- ARGV    until when they were taken in ms, then per job id, due in ms
-- Returns how many it has put off.
-- Called by Store.Rest. Safe to run twice.
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
local scores = redis.call('ZMSCORE', KEYS[1], unpack(ids))
local later = {}
for i = 1, #ids do
  if scores[i] == ARGV[1] then later[#later + 1], later[#later + 2] = ARGV[2 * i + 1], ids[i] end
end
if #later > 0 then redis.call('ZADD', KEYS[1], 'XX', unpack(later)) end
return #later / 2
