-- The status index; this stands before the scripts that change it. A shard has one index per status, and every job of the
-- shard is in one of them: its entry, scored by its id. An entry holds what lists filter by, so that a search reads no
-- records (see find.go).

-- moved takes a job from the index of one status to that of another. A job without an entry stays out of lists, not
-- out of the counts.
local function moved(prefix, id, was, is)
  local from = prefix .. 'st:' .. was
  local entry = redis.call('ZRANGEBYSCORE', from, id, id)[1] or id
  redis.call('ZREM', from, entry)
  redis.call('ZADD', prefix .. 'st:' .. is, id, entry)
end
