-- Keys that a script finds out by itself, and so are not among KEYS; this stands before the scripts that have such. While a slot
-- of a cluster moves from one node to another, some of its keys are here and some are there. For those in KEYS, Redis sees to it
-- that all are here. For others it stops the script when it comes to one that is not, after half of its writes; or, on the node
-- that the slot moves to, lets it go on as if there were no such key.
--
-- here stops the script unless all of the keys are on this node, those that are to be made as well. It is called before the
-- first write, and before what is missing counts as gone.
local function here(keys)
  for i = 1, #keys, 4000 do -- of one key alone, the node that a slot moves to would not tell that it is on the other one
    redis.call('EXISTS', KEYS[1], unpack(keys, i, math.min(i + 3999, #keys)))
  end
end
