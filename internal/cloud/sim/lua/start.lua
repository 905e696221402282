-- Starts the run of a machine, once.
-- ARGV[4] machine, ARGV[5] token, ARGV[6] ms that the setup takes, ARGV[7] ms that all takes, -1 for ever, ARGV[8] stage that
-- ends it, ARGV[9] exit code, ARGV[10] signal of a notice, "-" if the run is not told, ARGV[11] 1 if it is deaf to TERM,
-- ARGV[12] bytes that it prints, ARGV[13] ms after which it prints nothing more, ARGV[14] what it prints, as JSON
-- Returns what happened ("away", "started", "already", "stopped", "other"), now, the machine, the run.
local id = ARGV[4]
local w = load(id)
if not w or now < tonumber(w[RUNS]) or (w[GONE] ~= '0' and now >= tonumber(w[GONE])) then return {'away', now} end
local r = load_run(id)
local function answer(what) return {what, now, table.concat(w, ' '), table.concat(r, ' ')} end
if r and r[STARTED] == '0' then return answer('stopped') end
if r and r[TOKEN] ~= ARGV[5] then
  tell(now, 'started_again', BY, id, w, ARGV[5])
  return answer('other')
end
if r then return answer('already') end
local ends = tonumber(ARGV[7])
r = {ARGV[5], num(now), ARGV[6] == '0' and '0' or num(now + ARGV[6]), ends < 0 and '0' or num(now + ends), ARGV[8], ARGV[9],
  ARGV[10], ARGV[11], '0', ARGV[12], num(now + ARGV[13]), w[OFFSET], ARGV[14]}
tell(now, 'start', BY, id, w, ARGV[5], '{"ends":' .. r[ENDS] .. ',"exit":' .. r[CODE] .. ',"stage":"' .. r[STAGE] .. '"}')
if w[NOTICE] ~= '0' then heed(id, w, r) end
save_run(id, r)
return answer('started')
