-- The index of a shard's jobs; this stands before the scripts that use it. Lists are read from it without reading a record,
-- and it is small and quick to look through, so that a search needs no index of its own for each filter (see find.go).
--
-- The jobs of a shard, in the order of their ids, stand in blocks of 128. A block is two strings:
--
--   ix:<block>   columns of 128 places: statuses, codes of users, codes of names, all of one byte; when each was submitted, in
--                ms, of six bytes. Then 1024 bits that say what the block has not, and the first and the last of the times.
--                Behind that the users, as \29 user \31 code.
--   nm:<block>   the names, as \30 name \31 code. Codes are bytes from 128 on, in order.
--
-- The bits are those of the users and of all three bytes in a row of the names. They and the times are written when the
-- last place is taken, and the last bit then says so: most blocks need not be looked through for them, and Lua is slow to
-- read a text.
--
-- A place without a job has the status '.'. blocks holds the numbers of the blocks that are there, count how many jobs are in
-- each status.
local places = 128
local users, names, times, bits, span, texts = places, 2 * places, 3 * places, 9 * places, 10 * places, 10 * places + 12
local described = 8 * bits + 1023 -- the bit
local code = {
  PENDING = 'a', STARTING = 'b', RUNNING = 'c', RECOVERING = 'd', CANCELLING = 'e', SUCCEEDED = 'f', CANCELLED = 'g',
  FAILED = 'h', FAILED_SETUP = 'i', FAILED_PRECHECKS = 'j', FAILED_NO_RESOURCE = 'k', FAILED_CONTROLLER = 'l',
}

-- placed is the block of a job and its place there. A deployment never changes the number of its shards.
local function placed(id, shards)
  local n = math.floor(id / shards)
  local block = math.floor(n / places)
  return string.format('%.0f', block), n - block * places
end

-- coded is the code of a text in a list, to which it is added if need be. More than there are codes come only to an index that
-- was damaged, and share the last one.
local function coded(key, list, text)
  local _, last = string.find(list, text, 1, true)
  if last then return string.sub(list, last + 1, last + 1) end
  local new = #list == 0 and '\128' or string.char(math.min(string.byte(list, -1) + 1, 255))
  redis.call('APPEND', key, text .. new)
  return new
end

-- bitsOf are those of a user or a part of a name, "" for any, as a set.
local function bitsOf(user, name, set)
  if user ~= '' then
    local n = 0
    for i = 1, #user do n = (n * 31 + string.byte(user, i)) % 1021 end
    set[n] = true
  end
  local a, b, c = string.byte(name, 1, 2)
  for i = 3, #name do
    c = string.byte(name, i)
    set[(a * 961 + b * 31 + c) % 1021] = true
    a, b = b, c
  end
  return set
end

-- timeAt is the time that begins behind so many bytes of a string.
local function timeAt(text, from)
  local a, b, c, d, e, f = string.byte(text, from + 1, from + 6)
  return ((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f
end

local function timeText(at)
  local b = {}
  for i = 6, 1, -1 do
    b[i] = at % 256
    at = math.floor(at / 256)
  end
  return string.char(unpack(b))
end

-- describe writes what a block has not, and its times.
local function describe(ix, nm)
  local all = redis.call('GET', ix)
  local set = {[1023] = true}
  for user in string.gmatch(string.sub(all, texts + 1), '\29([^\31]*)\31') do bitsOf(user, '', set) end
  for name in string.gmatch(redis.call('GET', nm) or '', '\30([^\31]*)\31') do bitsOf('', name, set) end
  local bytes = {}
  for i = 0, 127 do
    local n = 0
    for j = 8 * i, 8 * i + 7 do n = 2 * n + (set[j] and 1 or 0) end
    bytes[i + 1] = n
  end
  local first, last = math.huge, 0
  for i = 0, places - 1 do
    if string.sub(all, i + 1, i + 1) ~= '.' then
      local at = timeAt(all, times + 6 * i)
      first, last = math.min(first, at), math.max(last, at)
    end
  end
  redis.call('SETRANGE', ix, bits, string.char(unpack(bytes)) .. timeText(first) .. timeText(last))
end

-- indexKeys appends the keys of what put, moved and forgotten may touch for a job.
local function indexKeys(prefix, shards, id, keys)
  local block = placed(id, shards)
  for _, key in ipairs({'blocks', 'count', 'ix:' .. block, 'nm:' .. block}) do keys[#keys + 1] = prefix .. key end
end

-- put writes a job into the index. What is known of the job before it is kept: those of a submission are alike.
local before = {}
local function put(prefix, shards, id, status, at, user, name)
  local block, place = placed(id, shards)
  local ix, nm = prefix .. 'ix:' .. block, prefix .. 'nm:' .. block
  if before.ix ~= ix then
    if redis.call('EXISTS', ix) == 0 then
      redis.call('SET', ix, string.rep('.', places) .. string.rep('\0', texts - places))
      redis.call('DEL', nm)
      redis.call('ZADD', prefix .. 'blocks', block, block)
    end
    before = {ix = ix, late = redis.call('GETBIT', ix, described) == 1}
  end
  if before.user ~= user then
    before.user, before.by = user, coded(ix, redis.call('GETRANGE', ix, texts, -1), '\29' .. user .. '\31')
  end
  if before.name ~= name then
    before.name, before.called = name, coded(nm, redis.call('GET', nm) or '', '\30' .. name .. '\31')
  end
  redis.call('SETRANGE', ix, place, code[status])
  redis.call('SETRANGE', ix, users + place, before.by)
  redis.call('SETRANGE', ix, names + place, before.called)
  redis.call('SETRANGE', ix, times + 6 * place, timeText(at))
  if place == places - 1 then -- most likely the last one: what the strings have in reserve is given back
    redis.call('SET', ix, redis.call('GET', ix))
    redis.call('SET', nm, redis.call('GET', nm))
  end
  if before.late or place == places - 1 then describe(ix, nm) end
end

-- count changes how many jobs are in a status.
local function count(prefix, status, by) redis.call('HINCRBY', prefix .. 'count', status, by) end

-- moved gives a job another status. One that the index has lost is found by its status again, but not by its name.
local function moved(prefix, shards, id, was, is)
  local block, place = placed(id, shards)
  local ix = prefix .. 'ix:' .. block
  if string.find(redis.call('GETRANGE', ix, place, place), '%a') then
    redis.call('SETRANGE', ix, place, code[is])
  else
    put(prefix, shards, id, is, 0, '', '')
  end
  count(prefix, was, -1)
  count(prefix, is, 1)
end

-- forgotten takes a job out of the index, and with the last one its block. Names that no job has any more go when few are left.
local function forgotten(prefix, shards, id, was)
  local block, place = placed(id, shards)
  local ix, nm = prefix .. 'ix:' .. block, prefix .. 'nm:' .. block
  count(prefix, was, -1)
  if not string.find(redis.call('GETRANGE', ix, place, place), '%a') then return end
  redis.call('SETRANGE', ix, place, '.')
  local columns = redis.call('GETRANGE', ix, 0, times - 1)
  local _, free = string.gsub(string.sub(columns, 1, places), '%.', '')
  if free == places then
    redis.call('DEL', ix, nm)
    redis.call('ZREM', prefix .. 'blocks', block)
  elseif free == places / 2 or free == places - 8 then
    local list = redis.call('GET', nm) or ''
    local used = {[string.sub(list, -1)] = true} -- the last one stays, since the next code is told by it
    for i = 1, places do
      if string.sub(columns, i, i) ~= '.' then used[string.sub(columns, names + i, names + i)] = true end
    end
    redis.call('SET', nm, (string.gsub(list, '\30[^\31]*\31([\128-\255])', function(called)
      if not used[called] then return '' end
    end)))
  end
end
