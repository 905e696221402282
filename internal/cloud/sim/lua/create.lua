-- Makes the machines of an attempt, all or none, or finds them.
-- ARGV[4] home, ARGV[5] job, ARGV[6] task, ARGV[7] attempt, ARGV[8] token, ARGV[9] zone, ARGV[10] type, ARGV[11] spot 0/1,
-- ARGV[12] price, ARGV[13] ms to boot, ARGV[14] ms until lists show it, ARGV[15] ms after which the first half of them, and
-- nothing else, ends again, -1 for not, ARGV[16] nonce, then for each machine its id and a number from 0 to 1 that says whom to take first
-- Returns what happened ("made", "again", "half", "ended", "full"), now, and the machines as id and line in turn; for "full"
-- the capacity and how many are there.
-- Called by Provider.Create. Run twice, it finds what it made.
local home, zone = ARGV[4], ARGV[9]
local found = {}
for i = 17, #ARGV, 2 do
  local line = redis.call('HGET', P .. 'm:' .. home, ARGV[i])
  if line then found[#found + 1], found[#found + 2] = ARGV[i], line end
end
local w = {ARGV[5], ARGV[6], ARGV[7], '0', zone, ARGV[10], ARGV[11], ARGV[12], num(now), num(now + ARGV[13]),
  ARGV[14] == '0' and '0' or num(now + ARGV[14]), '0', '0', '0', '-', '0', '0', '0', ARGV[16]}
if #found > 0 then
  for i = 1, #found, 2 do tell(now, 'again', BY, found[i], w, ARGV[8]) end
  return {'again', now, unpack(found)}
end
if redis.call('EXISTS', tombstone(ARGV[17], w, ARGV[16]), tombstone(ARGV[17], w, '-')) > 0 then
  tell(now, 'refused', BY, ARGV[17], w, ARGV[8], 'terminated')
  return {'ended', now}
end
local room = tonumber(redis.call('HGET', P .. 'room', zone) or 0)
redis.call('ZREMRANGEBYSCORE', P .. 'going:' .. zone, '-inf', now)
local there = redis.call('ZCARD', P .. 'live:' .. zone) + redis.call('ZCARD', P .. 'going:' .. zone)
local nodes = (#ARGV - 16) / 2
if there + nodes > room then
  tell(now, 'refused', BY, ARGV[17], w, ARGV[8], 'capacity')
  return {'full', now, room, there}
end
local undo = tonumber(ARGV[15])
if undo >= 0 then nodes = math.ceil(nodes / 2) end
local ids = redis.call('HGET', P .. 'j:' .. home, ARGV[5]) or ''
for n = 0, nodes - 1 do
  local id = ARGV[17 + 2 * n]
  w[RANK] = num(n)
  save(id, w)
  ids = ids == '' and id or ids .. ' ' .. id
  tell(now, 'create', BY, id, w, ARGV[8])
  if undo >= 0 then
    w[ASKED] = num(now)
    tell(now, 'terminate', '', id, w, ARGV[8], 'undone')
    condemn(id, w, now + undo, 'u')
    w[ASKED], w[GONE], w[HOW] = '0', '0', '-'
  else -- a machine on demand is never taken
    redis.call('ZADD', P .. 'live:' .. zone, ARGV[11] == '1' and ARGV[18 + 2 * n] or '2', id)
  end
  if LEDGER then redis.call('ZADD', P .. 'due', w[RUNS], 'b ' .. id) end
  found[#found + 1], found[#found + 2] = id, table.concat(w, ' ')
end
redis.call('HSET', P .. 'j:' .. home, ARGV[5], ids)
return {undo >= 0 and 'half' or 'made', now, unpack(found)}
