// Package devredis is the Redis inside `worker dev`, so that trying Outlast needs nothing but its two binaries.
//
//	redis-server found   →  a private one: unix socket in a 0700 directory, append-only file, ends with the worker
//	no redis-server      →  miniredis in this process: loopback TCP with a random password, nothing is kept
//
// [Start] takes a lock on its directory first, so that two workers never run two servers on one append-only file. The
// server inherits the lock: after a kill -9 of the worker the next one waits for the last server to end, too.
//
// The second form is for a first look on a computer without Redis. It is about seven times slower, good to some
// hundred ticks a second, and says plainly that it keeps nothing ([Server.Kept], [Server.Notice]).
//
// Package redistest starts real servers for tests.
package devredis
