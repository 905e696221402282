-- What all scripts of a world share. It stands before each of them.
-- KEYS[1] the prefix of the world: all of its keys begin with it and lie in one slot
-- ARGV[1] 1 if there is a ledger, ARGV[2] who calls, ARGV[3] ms for which an ended machine stays listed
--
-- A machine is a line of words in the hash m:<home>, its run one in r:<home>. A home is a region of a deployment; its number
-- is in the machine's name, s<home>-<rest>. Times are Unix ms; 0 means never. See machine.go and run.go.
local P = KEYS[1]
local LEDGER, BY, KEEP = ARGV[1] == '1', ARGV[2], tonumber(ARGV[3])
local T = redis.call('TIME')
local now = T[1] * 1000 + math.floor(T[2] / 1000)

-- the words of a machine
local JOB, TASK, ATTEMPT, RANK, ZONE, TYPE, SPOT, PRICE, CREATED, RUNS, SHOWN, NOTICE, ASKED, GONE, HOW =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
local OFFSET, STEPPED, BEFORE, NONCE = 16, 17, 18, 19
local MACHINE_WORDS = 19
-- the words of a run; what it prints follows
local TOKEN, STARTED, SETUP, ENDS, STAGE, CODE, SIGNAL, DEAF, STOPPED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local RUN_WORDS = 12

local TOMBSTONE = 3600000 -- a create call that comes later than this after the end of its attempt is not a late one
local LONGEST = 5000000   -- entries of the ledger
local DYING = 10          -- ms from TERM to the end of a process

local function num(n) return string.format('%.0f', n) end -- not 1.7e+12

-- words splits the first n words of a line; the last of them is all that is left if whole is set.
local function words(line, n, whole)
  local w, at = {}, 1
  for i = 1, n do
    local stop = string.find(line, ' ', at, true)
    if not stop or (whole and i == n) then w[i] = string.sub(line, at); break end
    w[i] = string.sub(line, at, stop - 1)
    at = stop + 1
  end
  return w
end

local function home_of(id) return string.match(id, '^s(%d+)%-') end

local function load(id)
  local home = home_of(id)
  local line = home and redis.call('HGET', P .. 'm:' .. home, id)
  return line and words(line, MACHINE_WORDS) or nil
end

local function save(id, w) redis.call('HSET', P .. 'm:' .. home_of(id), id, table.concat(w, ' ')) end

local function load_run(id)
  local line = redis.call('HGET', P .. 'r:' .. home_of(id), id)
  return line and words(line, RUN_WORDS + 1, true) or nil
end

local function save_run(id, r) redis.call('HSET', P .. 'r:' .. home_of(id), id, table.concat(r, ' ')) end

local owners = {} -- deployments by home
local function owner(id)
  local home = home_of(id)
  if not owners[home] then owners[home] = redis.call('HGET', P .. 'owners', home) or '' end
  return owners[home]
end

-- tell writes an event of a machine into the ledger.
local function tell(at, op, by, id, w, token, detail)
  if not LEDGER then return end
  redis.call('XADD', P .. 'ledger', 'MAXLEN', '~', LONGEST, '*', 'at', num(at), 'op', op, 'by', by, 'machine', id,
    'deployment', owner(id), 'job', w[JOB], 'task', w[TASK], 'attempt', w[ATTEMPT], 'nonce', w[NONCE], 'token', token or '',
    'zone', w[ZONE], 'detail', detail or '')
end

-- tombstone marks an attempt as ended; "-" stands for the jobs of any nonce.
local function tombstone(id, w, nonce)
  return P .. 'x:' .. home_of(id) .. ':' .. w[JOB] .. ':' .. nonce .. ':' .. w[TASK] .. ':' .. w[ATTEMPT]
end

-- gone tells that nothing runs on a machine any more.
local function gone(id, w)
  local t = w[HOW] == 't' or w[HOW] == 'u' -- terminated
  tell(tonumber(w[GONE]), t and 'terminated' or 'preempted', '', id, w)
  redis.call('ZREM', P .. 'going:' .. w[ZONE], id)
  redis.call('ZADD', P .. 'due', tonumber(w[GONE]) + KEEP, 'f ' .. id)
end

-- condemn gives a machine its end.
local function condemn(id, w, at, how)
  w[GONE], w[HOW] = num(at), how
  save(id, w)
  redis.call('ZREM', P .. 'live:' .. w[ZONE], id)
  if at > now then
    redis.call('ZADD', P .. 'going:' .. w[ZONE], at, id)
    redis.call('ZADD', P .. 'due', at, 'g ' .. id)
  else
    redis.call('ZREM', P .. 'due', 'g ' .. id)
    gone(id, w)
  end
end

-- cut ends a run that has not ended before.
local function cut(id, w, r, at, code, by)
  local ends = tonumber(r[ENDS])
  if r[STARTED] == '0' or (ends ~= 0 and ends <= at) then return false end
  r[ENDS], r[CODE] = num(at), num(code)
  r[STAGE] = at < tonumber(r[SETUP]) and 'setup' or 'run'
  tell(now, 'stop', by, id, w, r[TOKEN], '{"ends":' .. r[ENDS] .. '}')
  return true
end

-- heed lets a run that is told of a notice with a signal end by it.
local function heed(id, w, r)
  local signal = tonumber(r[SIGNAL]) or 0
  if signal == 0 or (r[DEAF] == '1' and signal == 15) then return false end
  return cut(id, w, r, now + DYING, 128 + signal, 'notice')
end

-- preempt takes a machine away: at once, or after a notice. Whoever has got a notice keeps it.
local function preempt(id, w, notice, how)
  if w[GONE] ~= '0' and (notice > 0 or tonumber(w[GONE]) <= now) then return false end
  if notice == 0 then condemn(id, w, now, how); return true end
  w[NOTICE] = num(now)
  tell(now, 'notice', BY, id, w, '', '{"gone":' .. num(now + notice) .. '}')
  condemn(id, w, now + notice, how)
  local r = load_run(id)
  if r and heed(id, w, r) then save_run(id, r) end
  return true
end

-- evict takes spot machines until no more than so many are left in a zone.
local function evict(zone, room, notice)
  local over = redis.call('ZCARD', P .. 'live:' .. zone) - room
  if over <= 0 then return end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', P .. 'live:' .. zone, '-inf', '(2', 'LIMIT', 0, over)) do
    preempt(id, load(id), notice, 'c')
  end
end
