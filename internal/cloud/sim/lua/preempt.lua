-- Takes one machine away.
-- ARGV[4] home, ARGV[5] machine, ARGV[6] ms of notice
-- Returns 0 if there is no such machine, else 1. Run twice, the first notice stays.
if home_of(ARGV[5]) ~= ARGV[4] then return 0 end
local w = load(ARGV[5])
if not w then return 0 end
preempt(ARGV[5], w, tonumber(ARGV[6]), 'n')
return 1
