// Package store keeps the record of every job in Redis. The record is the truth: queues only carry the names of
// jobs that somebody should look at.
//
// Jobs are spread over shards (id mod shards). Every key of a shard carries the shard's hash tag, so that one script
// can touch a job and its indexes, also on Redis Cluster:
//
//	ol:{s03}:job:7     the record: a hash, see codec.go
//	ol:{s03}:req:7     the request, as JSON         ol:{s03}:sec:7   sealed secrets, until the job is done
//	ol:{s03}:ev:7      its history, bounded         ol:{s03}:past:7  its attempts that are gone, bounded
//	ol:{s03}:lease:7   the redsync lock of an act   ol:{s03}:tail:…  live tails of logs, bounded and fleeting
//	ol:{s03}:jrn:7    what workers have logged about the job, bounded
//	ol:{s03}:due       job → when somebody must look again. It is timer, lease and sweep in one, and holds every job that is not done
//	ol:{s03}:ended     job → when it ended          ol:{s03}:count   how many jobs are in each status
//	ol:{s03}:ix:…  nm:…  blocks    what lists filter by, of 128 jobs each; see lua/index.lua
//	ol:{s03}:made:7    what was written of the submission with a key that began with job 7, until all of it is
//	ol:{s03}:brief     job → when its logs are due, of those that ended and say so themselves
//	ol:{s03}:chain     the shard's watch: epoch, due, wakes
//	ol:{d}:…           what belongs to the deployment: its identity, slots, views, workers, chains of the fleet
//
// Every change is a Lua script in lua/, one file each, with its keys, arguments and callers in the header. Each may run
// twice: go-redis repeats a script whose reply was lost. All time is Redis time.
//
// A wake while a job is driven is seen by the commit that gives the claim back: the job is due at once. A record that
// cannot be read is a [CorruptError]: it is reported, left as it is, and looked at again every ten minutes, while all
// others go on.
//
// On failure: an error of Redis is returned as it is, wraps [ErrUnavailable] and means a pause for the caller, never a
// verdict (G10). [ErrStale] means that somebody else drives the job now: stop, touch nothing.
package store
