package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

// Ensure that what happens to Redis in the middle of a run, where it is more than one server or has more than one password, is
// a pause: submissions are refused with what is the matter, the worker says that it cannot serve, the user's code ends
// meanwhile, and when Redis is well again the job ends as it did, on the machine that it had (G1, G10).
func TestG10_RedisOfManyFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T) (f *fleet, hurt, heal func(), codes []string){
		"a node of a cluster dies": func(t *testing.T) (*fleet, func(), func(), []string) {
			c := redistest.StartCluster(t, 3)
			f := newFleetOn(t, "redis+cluster://"+c.Hosts(), c.Nodes...)
			node := c.Owner(c.Slot("ol:{d}:"))
			return f, node.Kill9, node.Restart, []string{"redis_cluster_down", "store_unavailable"}
		},
		"a slot of a cluster is open": func(t *testing.T) (*fleet, func(), func(), []string) {
			c := redistest.StartCluster(t, 3)
			f := newFleetOn(t, "redis+cluster://"+c.Hosts(), c.Nodes...)
			slot := c.Slot("ol:{s01}:")
			to := c.Nodes[0]
			if c.Owner(slot) == to {
				to = c.Nodes[1]
			}
			return f, func() { c.Open(slot, to) }, func() { c.Close(slot, to) }, nil
		},
		"the password is changed": func(t *testing.T) (*fleet, func(), func(), []string) {
			s := redistest.Start(t, redistest.TCP(), redistest.Password(word))
			f := newFleetOn(t, "redis://:"+word+"@"+s.Address(), s)
			set := func(password string) func() {
				return func() {
					if err := f.admin.ConfigSet(context.Background(), "requirepass", password).Err(); err != nil {
						t.Error(err)
					}
					f.admin.ClientKillByFilter(context.Background(), "TYPE", "normal", "SKIPME", "yes")
				}
			}
			return f, set("an0ther-w0rd"), set(word), []string{"redis_denied"}
		},
		"it comes back as a replica": func(t *testing.T) (*fleet, func(), func(), []string) {
			s := redistest.Start(t, redistest.TCP(), redistest.Set("--replica-serve-stale-data", "no"))
			f := newFleetOn(t, "redis://"+s.Address(), s)
			replicaOf := func(args ...any) func() {
				return func() {
					if err := s.Client(t).Do(context.Background(), append([]any{"REPLICAOF"}, args...)...).Err(); err != nil {
						t.Error(err)
					}
				}
			}
			return f, replicaOf("127.0.0.1", "1"), replicaOf("NO", "ONE"), []string{"redis_read_only"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, hurt, heal, codes := prepare(t)
			w := f.worker()
			id := f.launch(waits)
			f.trace("runs")
			f.await(id, "RUNNING")
			hurt()
			var said string
			if codes != nil {
				f.eventually("a submission to be refused", func() bool {
					r := f.enqueue("launch", "-d", "-o", "json", "--", "true")
					said = fmt.Sprintf("%+v", r)
					return r.code == 1 && slices.Contains(codes, r.errorCode())
				}, func() string { return said })
				f.eventually("the worker to say that it cannot serve", func() bool {
					code, body := w.get("/readyz")
					said = body
					return code == 503
				}, func() string { return said })
			}
			f.leave("go")
			heal()
			if a := f.await(id, "SUCCEEDED"); len(a.Tasks) != 1 || a.Tasks[0].Attempts != 1 || a.Tasks[0].Recoveries != 0 {
				t.Errorf("the job did not stay on its machine: %+v", a)
			}
			f.eventually("the log", func() bool { return strings.Contains(f.enqueue("logs", id).out, "through") })
			f.eventually("the worker to serve again", func() bool { code, body := w.get("/readyz"); said = body; return code == 200 }, func() string { return said })
			f.await(f.launch("true"), "SUCCEEDED")
		})
	}
}

// Ensure that a setting of Redis which would lose jobs is found out while a worker runs: it says so in its log and to whoever
// asks whether it is ready, goes on, and is content when the setting is mended.
func TestEvictionIsFoundOutWhileAWorkerRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.worker()
	for _, tt := range []struct {
		policy string
		code   int
		log    string
	}{
		{"volatile-lru", 503, "redis was changed, and may lose jobs now"},
		{"noeviction", 200, "redis is set as it should be again"},
	} {
		if err := f.admin.ConfigSet(t.Context(), "maxmemory-policy", tt.policy).Err(); err != nil {
			t.Fatal(err)
		}
		var said string
		f.eventually(tt.policy+" to be found out", func() bool {
			code, body := w.get("/readyz")
			said = body
			return code == tt.code && (code == 200 || strings.Contains(body, tt.policy)) && strings.Contains(w.log.String(), tt.log)
		}, func() string { return said })
		f.await(f.launch("true"), "SUCCEEDED")
	}
}

// Ensure that whatever is wrong with certificates, Sentinels and kinds of Redis is told with the setting that mends it, by both
// programs and without a password.
func TestWaysToRedisAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	a, other := redistest.NewAuthority(t), redistest.NewAuthority(t)
	hour := time.Now().Add(time.Hour)
	secure := redistest.Start(t, redistest.TLS(a, a.Issue("127.0.0.1", hour)))
	expired := redistest.Start(t, redistest.TLS(a, a.Issue("127.0.0.1", time.Now().Add(-time.Hour))))
	plain := redistest.Start(t, redistest.TCP(), redistest.Password(word))
	watched := redistest.StartSentinel(t, 0, redistest.Password(word))
	cluster := redistest.StartCluster(t, 3)
	own, foreign, old := a.Issue("c", hour), other.Issue("c", hour), a.Issue("c", time.Now().Add(-time.Hour))
	nothing := filepath.Join(t.TempDir(), "nothing.pem")
	if err := os.WriteFile(nothing, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	shows := func(p redistest.Pair) []string {
		return []string{"OUTLAST_REDIS_TLS_CA=" + a.CA, "OUTLAST_REDIS_TLS_CERT=" + p.Cert, "OUTLAST_REDIS_TLS_KEY=" + p.Key}
	}
	sentinels := "redis+sentinel://:" + word + "@" + watched.Hosts()
	login := "OUTLAST_REDIS_SENTINEL_PASSWORD="
	for _, tt := range []struct {
		name, url string
		env       []string
		says      string
	}{
		{"no authority", "rediss://" + secure.Address(), nil, "name it with redis_tls.ca"},
		{"another authority", "rediss://" + secure.Address(), []string{"OUTLAST_REDIS_TLS_CA=" + other.CA}, "name it with redis_tls.ca"},
		{"no file", "rediss://" + secure.Address(), []string{"OUTLAST_REDIS_TLS_CA=/nowhere/ca.pem"}, "redis_tls.ca: open /nowhere/ca.pem"},
		{"no certificate in the file", "rediss://" + secure.Address(), []string{"OUTLAST_REDIS_TLS_CA=" + nothing}, "must be in PEM form"},
		{"no key", "rediss://" + secure.Address(), []string{"OUTLAST_REDIS_TLS_CERT=" + own.Cert}, "belong together"},
		{"another's key", "rediss://" + secure.Address(), shows(redistest.Pair{Cert: own.Cert, Key: old.Key}), "redis_tls.cert, redis_tls.key: tls: private key does not match"},
		{"another name", "rediss://localhost:" + strings.TrimPrefix(secure.Address(), "127.0.0.1:"), shows(own), "set redis_tls.server_name"},
		{"no client certificate", "rediss://" + secure.Address(), []string{"OUTLAST_REDIS_TLS_CA=" + a.CA}, "set redis_tls.cert and redis_tls.key"},
		{"a foreign client certificate", "rediss://" + secure.Address(), shows(foreign), "does not accept the certificate in redis_tls.cert"},
		{"an old client certificate", "rediss://" + secure.Address(), shows(old), "redis_tls.cert has expired"},
		{"an old certificate", "rediss://" + expired.Address(), shows(own), "not valid today"},
		{"TLS where there is none", "rediss://:" + word + "@" + plain.Address(), shows(own), "does not speak TLS"},
		{"none where there is TLS", "redis://" + secure.Address(), nil, "rediss://"},
		{"certificates without TLS", "redis://:" + word + "@" + plain.Address(), shows(own), "write rediss://"},
		{"Sentinels that ask", sentinels + "/" + redistest.MasterName, nil, "set redis_sentinel.password"},
		{"Sentinels with another password", sentinels + "/" + redistest.MasterName, []string{login + "wr0ng"}, "do not know the password in redis_sentinel.password"},
		{"another master", sentinels + "/another", []string{login + redistest.SentinelPassword}, "watch no master of that name"},
		{"no Sentinels", "redis+sentinel://" + cluster.Hosts() + "/x", nil, "are no Sentinels"},
		{"a login without Sentinels", "redis://:" + word + "@" + plain.Address(), []string{login + "x"}, "names no Sentinels"},
		{"no cluster", "redis+cluster://:" + word + "@" + plain.Address(), nil, "write redis:// instead"},
		{"a node alone", "redis://" + cluster.Nodes[0].Address(), nil, "redis+cluster://"},
		{"two lease servers", "redis://:" + word + "@" + plain.Address(), []string{"OUTLAST_LEASE_REDIS=redis://a,redis://b"}, "must be 3, 5"},
		{"one lease server twice", "redis://:" + word + "@" + plain.Address(), []string{"OUTLAST_LEASE_REDIS=redis://:" + word + "@a,redis://b,redis://a:6379"}, "a:6379 is there twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFleetOn(t, tt.url, plain)
			f.env = tt.env
			r := f.enqueue("queue")
			w := f.worker()
			for who, text := range map[string]string{"enqueue": r.errs, "worker": w.log.String()} {
				if !strings.Contains(text, tt.says) {
					t.Errorf("%s does not say %q:\n%s", who, tt.says, text)
				}
				if strings.Contains(text, word) || strings.Contains(text, redistest.SentinelPassword) || strings.Contains(text, "wr0ng") {
					t.Errorf("%s shows a password:\n%s", who, text)
				}
			}
			if r.code == 0 || !w.ended() {
				t.Error("it was not refused")
			}
		})
	}
}
