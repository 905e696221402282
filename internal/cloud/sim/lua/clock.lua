-- Steps the clock of a machine.
-- ARGV[4] machine, ARGV[5] by how many ms
-- Returns 0 if there is no such machine, else 1. Run twice, it steps twice.
local w = load(ARGV[4])
if not w then return 0 end
w[BEFORE], w[STEPPED] = w[OFFSET], num(now)
w[OFFSET] = num(w[OFFSET] + ARGV[5])
save(ARGV[4], w)
return 1
