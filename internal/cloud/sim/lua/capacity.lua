-- Sets the capacity of a zone until further notice, and takes what is too much.
-- ARGV[4] zone, ARGV[5] machines, ARGV[6] ms of notice, ARGV[7] 1 if it is meant for good, 0 if a set one goes before
if ARGV[7] == '0' and redis.call('HEXISTS', P .. 'set', ARGV[4]) == 1 then return 0 end
if ARGV[7] == '1' then redis.call('HSET', P .. 'set', ARGV[4], ARGV[5]) end
redis.call('HSET', P .. 'room', ARGV[4], ARGV[5])
evict(ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]))
return 1
