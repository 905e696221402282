package store

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// Trouble is why a Redis that answers does not serve, with what somebody can do about it. Like an outage it is a pause,
// never a verdict on a job; unlike one it does not end by itself.
type Trouble struct {
	Code   string // for programs: one of those in the table below
	Advice string
}

// troubles are the answers of Redis that call for somebody, by how they begin, and by a part of them.
var troubles = []struct {
	prefix, part string
	Trouble
}{
	{"NOAUTH", "", Trouble{"redis_denied", "this Redis asks for a password: put it into the URL, redis://:PASSWORD@HOST or redis://USER:PASSWORD@HOST"}},
	{"WRONGPASS", "", Trouble{"redis_denied", "this Redis does not know this user and password: correct the URL, and the configuration of Redis if need be"}},
	{"", "without any password configured", Trouble{"redis_denied", "this Redis has no password: leave it out of the URL"}},
	{"", "invalid password", Trouble{"redis_denied", "this Redis does not know this password: correct the URL"}},
	{"NOPERM", "", notPermitted},
	{"", "can't run this command", notPermitted}, // how a script says it
	{"", "can't access", notPermitted},
	{"", "can't be executed from script because", notPermitted},
	{"READONLY", "", Trouble{"redis_read_only", "this Redis is a replica and takes no writes: name its master, or all with redis+sentinel://"}},
	{"OOM", "", Trouble{"redis_full", "this Redis is full: raise its maxmemory; what is stored is safe, and jobs that run go on"}},
	{"MISCONF", "", Trouble{"redis_disk", "this Redis cannot write to its disk: see its log, and make room there"}},
	{"LOADING", "", Trouble{"redis_loading", "this Redis reads its file after a start: try again in a moment"}},
	{"MASTERDOWN", "", Trouble{"redis_read_only", "this Redis is a replica that has lost its master: name the master"}},
	{"CLUSTERDOWN", "", Trouble{"redis_cluster_down", "this cluster is not whole: see CLUSTER INFO"}},
	{"WRONGTYPE", "", Trouble{"redis_foreign", "another program uses the same keys in this Redis: give outlast a database of its own"}},
	{"", "max number of clients", Trouble{"redis_crowded", "this Redis has as many clients as it may: raise its maxclients"}},
	{"BUSY", "", Trouble{"redis_crowded", "a script of another program keeps this Redis busy: see its SLOWLOG"}},
	{"", "unknown command", Trouble{"redis_too_old", "this Redis lacks a command: outlast needs version 7 or later"}},
}

var notPermitted = Trouble{"redis_denied", "this user of Redis may do too little: it needs all keys and channels, and all commands but the dangerous ones (ACL SETUSER NAME on >PASSWORD ~* &* +@all -@dangerous +info)"}

// TroubleOf tells why Redis refused; the second result is false if it did not, or only was not there.
func TroubleOf(err error) (Trouble, bool) {
	if err == nil {
		return Trouble{}, false
	}
	for _, t := range troubles {
		if redis.HasErrorPrefix(err, t.prefix) && strings.Contains(err.Error(), t.part) {
			return t.Trouble, true
		}
	}
	return Trouble{}, false
}
