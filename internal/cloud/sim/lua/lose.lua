-- Takes machines of a zone at once and without a word, spot or not, those that are going included.
-- ARGV[4] zone, ARGV[5] at most so many, ARGV[6] ms: machines that were made later are spared
-- Returns how many it took, and how many it has looked at.
local took, seen = 0, 0
for _, set in ipairs({'live:', 'going:'}) do
  for _, id in ipairs(redis.call('ZRANGE', P .. set .. ARGV[4], 0, ARGV[5] - 1)) do
    local w = load(id)
    if not w then redis.call('ZREM', P .. set .. ARGV[4], id)
    elseif tonumber(w[CREATED]) <= tonumber(ARGV[6]) and preempt(id, w, 0, 'z') then took = took + 1 end
    seen = seen + 1
  end
end
return {took, seen}
