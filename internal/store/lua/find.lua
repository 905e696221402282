-- Searches the status indexes of one shard, newest first, without reading a record. What one call looks at is bounded,
-- so that no search stalls Redis; the caller goes on from the cursor.
-- KEYS    the indexes to search
-- ARGV    only ids below this one, most ids to return, most entries to look at, user or '', part of the name in lower
--         case or '', submitted at or after (ms), submitted at or before (ms) or '', slack in ms
-- Returns {id that was looked at last or '0', 1 if nothing is left, number of entries looked at, ids...}.
-- Called by Store.Find. It only reads.
-- Ids and times of submission grow together, but for the slack: so the indexes are in order of time as well.
local below, most, budget = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local user, name, since, till, slack = ARGV[4], ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local chunk = math.min(budget, 100)

local function parse(entry)
  local id, at, by, called = string.match(entry, '^(%d+)\31(%d+)\31([^\31]*)\31(.*)$')
  if not id then return tonumber(entry), 0, '', '' end -- see moved
  return tonumber(id), tonumber(at), by, called
end

-- past is the id of the first entry of an index that is submitted later than the slack allows, by bisection.
local function past(key)
  local low, high = 0, redis.call('ZCARD', key)
  while low < high do
    local mid = math.floor((low + high) / 2)
    local _, at = parse(redis.call('ZRANGE', key, mid, mid)[1])
    if at > till + slack then high = mid else low = mid + 1 end
  end
  local entry = redis.call('ZRANGE', key, low, low)[1]
  return entry and parse(entry)
end

-- may says no to most of the entries that do not match, at less cost than taking each apart.
local mark = '\31' .. user .. '\31'
local function may(entry)
  return (user == '' or string.find(entry, mark, 1, true)) and (name == '' or string.find(entry, name, 1, true))
end

local lists = {}
local function refill(l)
  l.entries = redis.call('ZREVRANGEBYSCORE', l.key, '(' .. l.below, '-inf', 'LIMIT', 0, chunk)
  l.i = 0
end
local function step(l)
  l.i = l.i + 1
  if l.i > #l.entries then
    if #l.entries < chunk then l.id = nil return end
    l.below = string.format('%.0f', l.id)
    refill(l)
    l.i = 1
    if #l.entries == 0 then l.id = nil return end
  end
  l.entry = l.entries[l.i]
  l.id = tonumber(string.match(l.entry, '^%d+'))
  if since > 0 then
    local _, at = parse(l.entry)
    if at > 0 and at < since - slack then l.id = nil end
  end
end
for _, key in ipairs(KEYS) do
  local l = {key = key, below = below}
  local first = till and past(key)
  if first and (below == '+inf' or first < tonumber(below)) then l.below = string.format('%.0f', first) end
  if l.below == '+inf' then l.below = 'inf' end
  refill(l)
  step(l)
  if l.id then lists[#lists + 1] = l end
end

local out = {'0', 0, 0}
local looked = 0
while #out - 3 < most and looked < budget do
  local newest
  for _, l in ipairs(lists) do
    if l.id and (not newest or l.id > newest.id) then newest = l end
  end
  if not newest then break end
  looked = looked + 1
  local l = newest
  out[1] = string.format('%.0f', l.id)
  if may(l.entry) then
    local _, at, by, called = parse(l.entry)
    if (user == '' or by == user) and (name == '' or string.find(called, name, 1, true)) and at >= since and (not till or at <= till) then
      out[#out + 1] = out[1]
    end
  end
  step(l)
end
out[2] = 1
for _, l in ipairs(lists) do
  if l.id then out[2] = 0 end
end
out[3] = looked
return out
