-- Numbers a region of a deployment.
-- ARGV[4] deployment, ARGV[5] region
-- Returns the number. Run twice, it gives the same.
local name = ARGV[4] .. ' ' .. ARGV[5]
local home = redis.call('HGET', P .. 'homes', name)
if not home then
  home = num(redis.call('HLEN', P .. 'homes') + 1)
  redis.call('HSET', P .. 'homes', name, home)
  redis.call('HSET', P .. 'owners', home, ARGV[4])
  redis.call('HSET', P .. 'regions', home, ARGV[5])
end
return home
