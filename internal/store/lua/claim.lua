-- Takes what is due in one shard. A job at step watch is claimed: its fence is raised, so that whoever held it before
-- can commit no more, and it is due again when the claim ends. A job at another step is only reported, and looked at
-- again after the grace, or when a limit of the user is reached: its act is what drives it. A calm one is only taken, if that
-- is asked for: nothing of its record is touched, and it is due again when a claim would end. A record that is damaged is
-- reported, left as it is, and looked at again after the pause; it never keeps the others from being taken.
-- A tick comes once a second: what is due before the middle of the next second is taken now, unless somebody holds it,
-- or every wait would be half a second longer than asked for, and those of whole seconds a whole one.
-- KEYS[1] due index
-- ARGV    prefix, limit, claim in ms, grace in ms for acts, pause in ms for damaged records, ms that it may be early, by how
--         much to raise the fences, 1 if calm jobs are only to be taken, then nothing, or the ids to claim whether they are due or not
-- Returns now, then per job {id, 'claimed', fence, when it was due}, {id, 'calm', what to ask, when it was due}, {id, 'act',
-- step, n, ran, priority, waits for a slot 0/1, a limit of the user is reached 0/1} if its act is overdue, or {id, 'damaged', what is
-- wrong}. The caller reads the claimed records by itself: Lua would take longer for that than for all the rest.
-- Called by the watch, Store.Claim, Take and ClaimThese. Run twice, it takes what else is due; what the first run took is due
-- again when its claim ends.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local prefix = ARGV[1]
local held, later, pause = now + ARGV[3], now + ARGV[4], now + ARGV[5]
local out, again = {now}, {} -- again: what to write into the index, all at once
local found
if #ARGV > 8 then
  found = {}
  for i = 9, #ARGV do found[#found + 1], found[#found + 2] = ARGV[i], now end
else
  found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now + ARGV[6], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
end
local keys = {}
for i = 1, #found, 2 do keys[#keys + 1] = prefix .. 'job:' .. found[i] end
here(keys)
local acts = {launch = true, recover = true, cleanup = true}
-- A calm job tells what its record would have the watch ask, as long as nobody has woken it and no limit of the user is near.
local function asks(calm, wakes, limit)
  if ARGV[8] ~= '1' or not calm then return false end
  local seen, every = string.match(calm, '^(%d+) (%d+) ')
  return seen == (wakes or '0') and (not limit or tonumber(limit) > held + every)
end
for i = 1, #found, 2 do
  local id = found[i]
  local key = prefix .. 'job:' .. id
  local r = redis.pcall('HMGET', key, 'step', 'fence', 'held', 'calm', 'wakes', 'limit')
  local step, fence = r[1], tonumber(r[2] or nil)
  local due
  if step == 'done' or (not step and not r.err and redis.call('EXISTS', key) == 0) then
    redis.call('ZREM', KEYS[1], id)
  elseif not step or not fence then
    due = pause
    out[#out + 1] = {id, 'damaged', r.err or 'it has no step or no fence'}
  elseif (tonumber(r[3] or nil) or 0) > now then
    -- its driver has until then
  elseif step == 'watch' and asks(r[4], r[5], r[6]) then
    due = held
    out[#out + 1] = {id, 'calm', r[4], found[i + 1]}
  elseif step == 'watch' then
    due, fence = held, string.format('%.0f', fence + ARGV[7])
    redis.call('HSET', key, 'fence', fence, 'held', held)
    out[#out + 1] = {id, 'claimed', fence, found[i + 1]}
  elseif not acts[step] then
    due = pause
    out[#out + 1] = {id, 'damaged', 'step "' .. step .. '"'}
  else
    local a = redis.call('HMGET', key, 'n', 'ran', 'wait', 'head')
    local slot = a[3] and string.find(a[3], '"launch_slot"', 1, true) and 1 or 0
    local limit = tonumber(r[6] or nil)
    local over = limit and limit <= now + ARGV[6] and 1 or 0
    due = limit and over == 0 and math.min(later, limit) or later
    out[#out + 1] = {id, 'act', step, a[1] or '', a[2] or '', priorityOf(a[4]), slot, over}
  end
  if due then again[#again + 1], again[#again + 2] = due, id end
end
for i = 1, #again, 4000 do
  redis.call('ZADD', KEYS[1], unpack(again, i, math.min(i + 3999, #again)))
end
return out
