package store

import (
	"errors"
	"io"
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
	{"READONLY", "", Trouble{"redis_read_only", "this Redis is a replica and takes no writes: name its master, or all with redis+sentinel://"}},
	{"OOM", "", Trouble{"redis_full", "this Redis is full: raise its maxmemory; what is stored is safe, and jobs that run go on"}},
	{"MISCONF", "", Trouble{"redis_disk", "this Redis cannot write to its disk: see its log, and make room there"}},
	{"LOADING", "", Trouble{"redis_loading", "this Redis reads its file after a start: try again in a moment"}},
	{"MASTERDOWN", "", Trouble{"redis_read_only", "this Redis is a replica that has lost its master: name the master"}},
	{"CLUSTERDOWN", "", Trouble{"redis_cluster_down", "this cluster is not whole: see CLUSTER INFO"}},
	{"WRONGTYPE", "", Trouble{"redis_foreign", "another program uses the same keys in this Redis: give outlast a database of its own"}},
	{"", "max number of clients", Trouble{"redis_crowded", "this Redis has as many clients as it may: raise its maxclients"}},
	{"BUSY", "", Trouble{"redis_crowded", "a script of another program keeps this Redis busy: see its SLOWLOG"}},
	{"TRYAGAIN", "", Trouble{"redis_cluster_down", "this cluster moves the keys of a script just now: try again in a moment"}},
	{"", "access a non local key in a cluster", Trouble{"redis_cluster_down", "this cluster moves the keys of a script just now: try again in a moment"}},
	{"ASK", "", Trouble{"redis_cluster_down", "this cluster moves the keys of a script just now: try again in a moment"}},
	{"MOVED", "", Trouble{"redis_cluster", "this Redis is a node of a cluster: name its nodes with redis+cluster://host,host"}},
	{"", "cluster support disabled", Trouble{"redis_cluster", "this Redis is no cluster: write redis:// instead of redis+cluster://"}},
	{"", "unknown command 'sentinel'", Trouble{"redis_sentinel", "these servers are no Sentinels: name those, or write redis:// for a single server"}},
	{"", "unknown command", Trouble{"redis_too_old", "this Redis lacks a command: outlast needs version 7 or later"}},
}

// outside are what goes wrong before Redis is asked anything, by a part of the error.
var outside = []struct {
	part string
	Trouble
}{
	{"all sentinels specified in configuration are unreachable: NOAUTH", Trouble{"redis_denied", "these Sentinels ask for a password of their own: set redis_sentinel.password (OUTLAST_REDIS_SENTINEL_PASSWORD), and redis_sentinel.user if they have users"}},
	{"all sentinels specified in configuration are unreachable: WRONGPASS", Trouble{"redis_denied", "these Sentinels do not know the password in redis_sentinel.password; that in the URL is for the servers"}},
	{"all sentinels specified in configuration are unreachable: redis: nil", Trouble{"redis_sentinel", "these Sentinels watch no master of that name: it stands at the end of the URL, redis+sentinel://host,host/NAME"}},
	{"certificate signed by unknown authority", Trouble{"redis_tls", "the certificate of this Redis comes from an authority that is not trusted here: name it with redis_tls.ca"}},
	{"certificate is not valid for any names", Trouble{"redis_tls", namedOtherwise}},
	{"certificate is valid for", Trouble{"redis_tls", namedOtherwise}},
	{"it doesn't contain any IP SANs", Trouble{"redis_tls", namedOtherwise}},
	{"certificate has expired or is not yet valid", Trouble{"redis_tls", "the certificate of this Redis is not valid today: renew it, or set this computer's clock"}},
	{"tls: certificate required", Trouble{"redis_tls", "this Redis asks for a certificate: set redis_tls.cert and redis_tls.key"}},
	{"remote error: tls: expired certificate", Trouble{"redis_tls", "the certificate in redis_tls.cert has expired: renew it"}},
	{"remote error: tls:", Trouble{"redis_tls", "this Redis does not accept the certificate in redis_tls.cert: it must come from an authority that Redis knows"}},
	{"first record does not look like a TLS handshake", Trouble{"redis_tls", noTLS}},
	{"TLS handshake: context deadline exceeded", Trouble{"redis_tls", noTLS}},
	{"redis_tls.", Trouble{"redis_tls", "mend the file that the setting names"}},
}

const (
	namedOtherwise = "the certificate of this Redis is for another name: put that name into the URL, or set redis_tls.server_name"
	noTLS          = "this Redis does not speak TLS: write redis:// instead of rediss://"
)

// TroubleOf tells why Redis refused; the second result is false if it did not, or only was not there.
func TroubleOf(err error) (Trouble, bool) {
	if err == nil {
		return Trouble{}, false
	}
	if t, denied := deniedOf(err); denied {
		return t, true
	}
	if errors.Is(err, ErrUnavailable) && errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "TLS handshake") {
		return Trouble{"store_unavailable", "Redis closes the connection: write rediss:// instead of redis:// if it asks for TLS; else try again when it answers, jobs that run are not harmed"}, true
	}
	for _, t := range outside {
		if strings.Contains(err.Error(), t.part) {
			return t.Trouble, true
		}
	}
	for _, t := range troubles {
		if redis.HasErrorPrefix(err, t.prefix) && strings.Contains(err.Error(), t.part) {
			return t.Trouble, true
		}
	}
	return Trouble{}, false
}
