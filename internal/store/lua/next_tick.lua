-- next_tick is when the next tick of a chain is due, in ms: at a whole second, since the queue knows no smaller unit. This stands
-- before the scripts that end ticks.
local function next_tick(now, period)
  local next = math.ceil((now + period) / 1000) * 1000
  if next - now > tonumber(period) and period % 1000 == 0 then next = next - 1000 end
  if next <= now then next = next + 1000 end
  return next
end
