-- Searches the index of one shard, newest first, without reading a record. What one call looks at is bounded, so that no
-- search stalls Redis; the caller goes on from the cursor.
-- KEYS[1] blocks  KEYS[2] count
-- ARGV    prefix, shard, shards, only ids below this one or '', most ids to return, most blocks to look at, codes of the statuses,
--         user or '', part of the name in lower case or '', submitted at or after (ms), submitted at or before (ms) or '',
--         slack in ms
-- Returns {id that was looked at last or '0', 1 if nothing is left, number of blocks looked at, ids...}.
-- Called by Store.Find. It only reads.
-- Ids and times of submission grow together, but for the slack: so the index is in order of time as well.
local prefix, shard, shards, below = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local most, budget, wanted = tonumber(ARGV[5]), tonumber(ARGV[6]), '[' .. ARGV[7] .. ']'
local user, name, since, till, slack = ARGV[8], ARGV[9], tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])

local function key(block) return prefix .. 'ix:' .. block end
local function idOf(block, place) return (block * places + place) * shards + shard end

-- spans are the first and the last time of a block, nil if they are not known.
local function spans(block)
  if redis.call('GETBIT', key(block), described) == 1 then
    local text = redis.call('GETRANGE', key(block), span, span + 11)
    return timeAt(text, 0), timeAt(text, 6)
  end
end

-- began is when the first job of a block was submitted that is still there, nil if that is not known.
local function began(block)
  local at = string.find(redis.call('GETRANGE', key(block), 0, places - 1), '[^.]')
  if not at then return nil end
  local from = times + 6 * (at - 1)
  at = timeAt(redis.call('GETRANGE', key(block), from, from + 5), 0)
  return at > 0 and at or nil
end

-- may tells whether a block may have the user and the name that are looked for.
local sought = {}
for bit in pairs(bitsOf(user, name, {})) do sought[#sought + 1] = 8 * bits + bit end
local function may(block)
  for i = 1, math.min(#sought, 8) do
    if redis.call('GETBIT', key(block), sought[i]) == 0 then return redis.call('GETBIT', key(block), described) == 0 end
  end
  return true
end

-- owner is the code of the user in a block, nil if the user has no job there.
local function owner(block)
  local list = redis.call('GETRANGE', key(block), texts, -1)
  local _, last = string.find(list, '\29' .. user .. '\31', 1, true)
  return last and string.sub(list, last + 1, last + 1)
end

-- called are the codes of the names of a block that fit, as a set of a pattern; nil if there are none.
local function called(block)
  local list = redis.call('GET', prefix .. 'nm:' .. block) or ''
  local fit = {}
  local at = string.find(list, name, 1, true)
  while at do
    local _, last, code = string.find(list, '^[^\30\31]*\31([\128-\255])', at)
    fit[#fit + 1] = code
    at = string.find(list, name, (last or at) + 1, true)
  end
  return fit[1] and '[' .. table.concat(fit) .. ']'
end

-- fitting are the places of a block that fit, in order.
local function fitting(block)
  local out = {}
  if not may(block) then return out end
  local by = user == '' or owner(block)
  local set = by and (name == '' or called(block))
  if not set then return out end
  local whole = since <= 0 and not till
  if not whole then
    local first, last = spans(block)
    if first and (last < since or till and first > till) then return out end
    whole = first and first >= since and (not till or last <= till)
  end
  local only = user == '' and name == '' and whole
  local columns = redis.call('GETRANGE', key(block), 0, only and places - 1 or whole and times - 1 or bits - 1)
  local statuses, column, find, plain = string.sub(columns, 1, places)
  if user ~= '' then
    column, find, plain = string.sub(columns, users + 1, users + places), by, true
  elseif name ~= '' then
    column, find = string.sub(columns, names + 1, names + places), set
  else
    column, find = statuses, wanted
  end
  if not string.find(statuses, wanted) then return out end
  local at = string.find(column, find, 1, plain)
  while at do
    local fits = column == statuses or string.find(string.sub(statuses, at, at), wanted)
    if fits and user ~= '' and name ~= '' then fits = string.find(string.sub(columns, names + at, names + at), set) end
    if fits and not whole then
      local when = timeAt(columns, times + 6 * (at - 1))
      fits = when >= since and (not till or when <= till)
    end
    if fits then out[#out + 1] = at - 1 end
    at = string.find(column, find, at + 1, plain)
  end
  return out
end

local out = {'0', 0, 0}
local asked = {}
for status, letter in pairs(code) do
  if string.find(wanted, letter, 1, true) then asked[#asked + 1] = status end
end
local any = false
for _, n in ipairs(redis.call('HMGET', KEYS[2], unpack(asked))) do any = any or (tonumber(n or nil) or 0) > 0 end
if not any then
  out[2] = 1
  return out
end

-- The first block to look at: that of the cursor, or the last one that may hold a job of before the end of the time.
local top = '+inf'
if below then top = math.floor((math.ceil((below - shard) / shards) - 1) / places) end
if till then
  local low, high = 0, redis.call('ZCARD', KEYS[1])
  while low < high do
    local mid = math.floor((low + high) / 2)
    local at = began(redis.call('ZRANGE', KEYS[1], mid, mid)[1])
    if at and at > till + slack then high = mid else low = mid + 1 end
  end
  local last = tonumber(redis.call('ZRANGE', KEYS[1], low, low)[1])
  if last and (top == '+inf' or last < top) then top = last end
end

local blocks = redis.call('ZREVRANGEBYSCORE', KEYS[1], top, '-inf', 'LIMIT', 0, budget + 1)
local more = #blocks > budget
if more then blocks[#blocks] = nil end
local keys = {}
for _, block in ipairs(blocks) do
  keys[#keys + 1] = key(block)
  if name ~= '' then keys[#keys + 1] = prefix .. 'nm:' .. block end
end
here(keys)
for i, block in ipairs(blocks) do
  local list = fitting(block)
  out[3] = i
  for j = #list, 1, -1 do
    local id = idOf(block, list[j])
    if not below or id < below then
      out[1] = string.format('%.0f', id)
      out[#out + 1] = out[1]
      if #out - 3 >= most then return out end
    end
  end
  out[1] = string.format('%.0f', math.min(idOf(block, 0), below or math.huge))
  if since > 0 then
    local at = began(block)
    if at and at < since - slack then
      more = false
      break
    end
  end
end
if not more then out[2] = 1 end
return out
