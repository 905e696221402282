-- Asks the run of a machine to end; before its start it forbids the start.
-- ARGV[4] machine, ARGV[5] ms of grace
-- Returns what happened ("away", "stopped"), now, the machine, the run. Run twice, it stops once.
local id = ARGV[4]
local w = load(id)
if not w or now < tonumber(w[RUNS]) or (w[GONE] ~= '0' and now >= tonumber(w[GONE])) then return {'away', now} end
local r = load_run(id)
local ends = r and tonumber(r[ENDS]) or 0
if not r then
  r = {'-', '0', '0', '0', 'setup', '143', '-', '0', '1', '0', '0', '0', '[]'}
  tell(now, 'stop', BY, id, w, '', '{"ends":' .. num(now) .. '}')
elseif r[STARTED] ~= '0' and (ends == 0 or ends > now) then
  r[STOPPED] = '1'
  if ARGV[5] == '0' then cut(id, w, r, now + DYING, 137, BY)
  elseif r[DEAF] == '1' then cut(id, w, r, now + ARGV[5], 137, BY)
  else cut(id, w, r, now + DYING, 143, BY) end
end
save_run(id, r)
return {'stopped', now, table.concat(w, ' '), table.concat(r, ' ')}
