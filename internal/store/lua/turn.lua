-- The turn of a call that is limited: a token bucket, shared by all workers, and the line of those that found it empty.
-- Whoever comes before in the line is left a token, for as long as it is expected: cleanups before creates, high priority
-- before low, then as they came.
-- KEYS[1] bucket (tokens, at, pace: the part of the rate that is used now, slowed: when it was lowered last)
-- KEYS[2] line (caller -> order)  KEYS[3] expected (caller -> until when its place is kept)
-- ARGV    'take', calls a second, burst, caller, rank of its kind, longest wait in ms, ms that a place is kept beyond the wait
--         'slow', calls a second, burst
-- Returns for 'take' the ms to wait, 0 if the caller has its turn; for 'slow' the thousandths of the rate that are left.
-- Called by Store.Turn and Store.SlowDown. Run twice, it takes a token too many, or halves the pace once.
local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000)
local op, rate, burst = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local RECOVERY, LEAST, ONCE, KEPT = 60000, 1 / 64, 1000, 600000 -- ms to the whole pace, least pace, ms in which it is lowered once
local b = redis.call('HMGET', KEYS[1], 'tokens', 'at', 'pace', 'slowed')
local tokens, at, pace, slowed = tonumber(b[1] or burst), tonumber(b[2] or now), tonumber(b[3] or 1), tonumber(b[4] or 0)
local since = math.max(now - at, 0)
pace = math.min(pace + since / RECOVERY, 1)
tokens = math.min(tokens + since * rate * pace / 1000, burst)
local function keep()
  redis.call('HSET', KEYS[1], 'tokens', string.format('%.3f', tokens), 'at', now, 'pace', string.format('%.5f', pace), 'slowed', slowed)
  redis.call('PEXPIRE', KEYS[1], KEPT)
end
if op == 'slow' then
  if now - slowed >= ONCE or now < slowed then
    pace, tokens, slowed = math.max(pace / 2, LEAST), 0, now -- the answers to calls that were made at once count once
    keep()
  end
  return math.floor(pace * 1000)
end
local who = ARGV[4]
local overdue = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 100)
if #overdue > 0 then
  redis.call('ZREM', KEYS[2], unpack(overdue))
  redis.call('ZREM', KEYS[3], unpack(overdue))
end
local before = redis.call('ZCARD', KEYS[2])
if before > 0 then
  redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', ARGV[5] * 2 ^ 41 + now), who) -- exact in a double
  before = redis.call('ZRANK', KEYS[2], who)
end
if tokens >= before + 1 then
  tokens = tokens - 1
  redis.call('ZREM', KEYS[2], who)
  redis.call('ZREM', KEYS[3], who)
  keep()
  return 0
end
local wait = math.min(math.ceil((before + 1 - tokens) * 1000 / (rate * pace)), tonumber(ARGV[6]))
redis.call('ZADD', KEYS[2], 'NX', string.format('%.0f', ARGV[5] * 2 ^ 41 + now), who)
redis.call('ZADD', KEYS[3], now + wait + ARGV[7], who)
redis.call('PEXPIRE', KEYS[2], KEPT)
redis.call('PEXPIRE', KEYS[3], KEPT)
keep()
return wait
