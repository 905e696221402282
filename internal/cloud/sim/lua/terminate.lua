-- Ends machines, and sees to it that what was asked for before does not make them later.
-- ARGV[4] home, ARGV[5] job, ARGV[6] task, ARGV[7] attempt, ARGV[8] machine; as in cloud.Match, 0 or "" where it is left out.
-- ARGV[9] ms that it takes, ARGV[10] 1 to do only the first half, ARGV[11] nonce of the job, "-" for any
-- Returns how many machines it has told to end.
-- Called by Provider.Terminate. Run twice, it does it once.
local home, job, task, attempt, machine = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local slow, nonce = tonumber(ARGV[9]), ARGV[11]
local ids = machine ~= '' and {machine} or {}
if machine == '' then
  for id in string.gmatch(redis.call('HGET', P .. 'j:' .. home, job) or '', '%S+') do ids[#ids + 1] = id end
  if attempt ~= '0' then
    redis.call('SET', tombstone('s' .. home .. '-', {job, task, attempt}, nonce), '1', 'PX', TOMBSTONE)
  end
end
local meant = {}
for _, id in ipairs(ids) do
  local w = home_of(id) == home and load(id) or nil
  if w and (job == '0' or w[JOB] == job) and (nonce == '-' or w[NONCE] == '-' or w[NONCE] == nonce)
    and (machine ~= '' and job == '0' or attempt == '0' or (w[TASK] == task and w[ATTEMPT] == attempt)) then
    meant[#meant + 1] = {id, w}
  end
end
local told = 0
for i, m in ipairs(meant) do
  local id, w = m[1], m[2]
  if ARGV[10] == '1' and i > math.ceil(#meant / 2) then break end
  if machine == '' then redis.call('SET', tombstone(id, w, w[NONCE]), '1', 'PX', TOMBSTONE) end
  local ends = tonumber(w[GONE])
  if w[ASKED] == '0' and (ends == 0 or ends > now) then
    w[ASKED] = num(now)
    tell(now, 'terminate', BY, id, w)
    if ends == 0 or now + slow < ends then condemn(id, w, now + slow, 't') else save(id, w) end
    told = told + 1
  end
end
return told
