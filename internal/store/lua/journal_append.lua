-- Adds lines to a job's journal, which is bounded: the oldest go first, whole lines.
-- KEYS[1] journal
-- ARGV    lines, most bytes to keep, seconds to live
-- Called by Store.JournalAppend.
local max = tonumber(ARGV[2])
local size = redis.call('APPEND', KEYS[1], ARGV[1])
if size > max then
  local rest = redis.call('GETRANGE', KEYS[1], -math.floor(max / 2), -1)
  local first = string.find(rest, '\n', 1, true)
  redis.call('SET', KEYS[1], first and string.sub(rest, first + 1) or '')
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
return size
