package main

import (
	"context"
	"strings"
	"testing"
)

// waits is user code that tells that it runs, and ends when it is let go.
const waits = `touch "$SHARED/runs"; while [ ! -e "$SHARED/go" ]; do sleep 0.05; done; echo through`

// Ensure that a Redis which cannot be used is refused by both programs with a code, what it said and what can be done, and
// that neither a password nor a half-made deployment is left anywhere.
func TestRedisIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	const password = "pass-w0rd-of-redis"
	set := func(key, value string) func(*fleet) error {
		return func(f *fleet) error { return f.admin.ConfigSet(t.Context(), key, value).Err() }
	}
	withPassword := func(f *fleet, user, word string) {
		f.url = strings.Replace(f.url, "unix://", "unix://"+user+":"+word+"@", 1)
	}
	for _, tt := range []struct {
		name         string
		spoil        func(f *fleet) error
		reads, write string // error codes of `enqueue queue` and `enqueue launch`; "" for none
		worker       string // what a worker says before it ends; "" if it serves
	}{
		{"missing", func(f *fleet) error { f.url = "unix:///nowhere/redis.sock"; return nil }, "store_unavailable", "store_unavailable", "no such file"},
		{"asks for a password", set("requirepass", password), "redis_denied", "redis_denied", "put it into the URL"},
		{"another password", func(f *fleet) error {
			withPassword(f, "", "wr0ng-pass-w0rd")
			return f.admin.ConfigSet(t.Context(), "requirepass", password).Err()
		}, "redis_denied", "redis_denied", "does not know this user"},
		{"a user with too few rights", func(f *fleet) error {
			withPassword(f, "poor", password)
			return f.admin.ACLSetUser(t.Context(), "poor", "on", ">"+password, "~*", "&*", "+@read", "+@connection", "+time").Err()
		}, "redis_denied", "redis_denied", "may do too little"},
		{"a user without scripts", func(f *fleet) error {
			withPassword(f, "poor", password)
			return f.admin.ACLSetUser(t.Context(), "poor", "on", ">"+password, "~*", "&*", "+@all", "-@scripting").Err()
		}, "redis_denied", "redis_denied", "may do too little"},
		{"a user whose scripts may not write", func(f *fleet) error {
			withPassword(f, "poor", password)
			return f.admin.ACLSetUser(t.Context(), "poor", "on", ">"+password, "~*", "&*", "+@all", "-hset", "-hsetnx").Err()
		}, "", "redis_denied", "may do too little"},
		{"a user with other keys", func(f *fleet) error {
			withPassword(f, "poor", password)
			return f.admin.ACLSetUser(t.Context(), "poor", "on", ">"+password, "~other:*", "&*", "+@all").Err()
		}, "redis_denied", "redis_denied", "may do too little"},
		{"a replica", func(f *fleet) error { return f.admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err() },
			"", "redis_read_only", "is a replica"},
		{"full", set("maxmemory", "1"), "", "redis_full", "raise its maxmemory"},
		{"evicts", func(f *fleet) error {
			if err := set("maxmemory-policy", "allkeys-lru")(f); err != nil {
				return err
			}
			return set("maxmemory", "100mb")(f)
		}, "", "", "set maxmemory-policy noeviction"},
		{"of a newer version", func(f *fleet) error { return f.admin.HSet(t.Context(), "ol:{d}:deployment", "schema", 99).Err() },
			"schema", "schema", "use a newer version"},
		{"with another program's key", func(f *fleet) error { return f.admin.Set(t.Context(), "ol:{d}:deployment", "x", 0).Err() },
			"redis_foreign", "redis_foreign", "give outlast a database of its own"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.worker().term() // there is a deployment
			if tt.name == "with another program's key" {
				f.redis.Flush()
			}
			if err := tt.spoil(f); err != nil {
				t.Fatal(err)
			}
			reads := f.enqueue("queue", "-o", "json")
			writes := f.enqueue("launch", "-d", "-o", "json", "--", "true")
			for _, c := range []struct {
				what string
				result
				want string
			}{{"queue", reads, tt.reads}, {"launch", writes, tt.write}} {
				if c.want == "" && c.code != 0 || c.want != "" && (c.code != 1 || c.errorCode() != c.want) {
					t.Errorf("%s: %+v, want the code %q", c.what, c.result, c.want)
				}
			}
			w := f.worker()
			if !w.ended() || w.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(w.log.String(), tt.worker) {
				t.Errorf("the worker does not end with 1 and say %q:\n%s", tt.worker, w.log)
			}
			for _, text := range []string{reads.errs, writes.errs, w.log.String()} {
				if strings.Contains(text, password) || strings.Contains(text, "wr0ng-pass-w0rd") {
					t.Errorf("a password is shown: %s", text)
				}
			}
		})
	}
}

// Ensure that a Redis which still reads its file is told from one that is away.
func TestRedisIsLoading(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker().term()
	if err := f.admin.Eval(t.Context(), `for i = 1, 100000 do redis.call('SET', 'x' .. i, '') end return 1`, nil).Err(); err != nil {
		t.Fatal(err)
	}
	f.redis.RestartLoading() // a hundred seconds
	if r := f.enqueue("queue", "-o", "json"); r.code != 1 || r.errorCode() != "redis_loading" {
		t.Errorf("queue: %+v", r)
	}
	if w := f.worker(); !w.ended() || !strings.Contains(w.log.String(), "try again in a moment") {
		t.Errorf("the worker says:\n%s", w.log)
	}
	f.redis.Restart()
	if r := f.enqueue("queue"); r.code != 0 {
		t.Errorf("queue after it has loaded: %+v", r)
	}
}

// Ensure that whatever happens to Redis in the middle of a run is a pause: submissions are refused with what is the
// matter, a worker says that it cannot serve, the user's code runs on and even ends meanwhile, and when Redis is well
// again the job ends as it did, on the machine that it had (G1, G10).
func TestG10_RedisFailsInTheMiddle(t *testing.T) {
	t.Parallel()
	set := func(key, value string) func(*fleet) error {
		return func(f *fleet) error { return f.admin.ConfigSet(context.Background(), key, value).Err() }
	}
	const password = "pass-w0rd-of-redis"
	for _, tt := range []struct {
		name      string
		hurt      func(f *fleet) error
		heal      func(f *fleet) error
		code, why string // of a submission meanwhile, and what /readyz says
	}{
		{"full", set("maxmemory", "1"), set("maxmemory", "0"), "redis_full", "maxmemory"},
		{"a replica", func(f *fleet) error { return f.admin.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err() },
			func(f *fleet) error { return f.admin.Do(context.Background(), "REPLICAOF", "NO", "ONE").Err() }, "redis_read_only", "READONLY"},
		{"asks for a password", func(f *fleet) error {
			if err := set("requirepass", password)(f); err != nil {
				return err
			}
			return f.admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err()
		}, set("requirepass", ""), "redis_denied", "NOAUTH"},
		{"killed", func(f *fleet) error { f.redis.Kill9(); return nil }, func(f *fleet) error { f.redis.Restart(); return nil },
			"store_unavailable", "unavailable"},
		{"hangs", func(f *fleet) error { f.redis.Freeze(); return nil }, func(f *fleet) error { f.redis.Thaw(); return nil },
			"store_unavailable", "unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.worker()
			id := f.launch(waits)
			f.trace("runs")
			f.await(id, "RUNNING")
			if err := tt.hurt(f); err != nil {
				t.Fatal(err)
			}
			if r := f.enqueue("launch", "-d", "-o", "json", "--", "true"); r.code != 1 || r.errorCode() != tt.code {
				t.Errorf("a submission meanwhile: %+v, want %s", r, tt.code)
			}
			var said string
			f.eventually("the worker to say that it cannot serve", func() bool {
				code, body := w.get("/readyz")
				said = body
				return code == 503 && strings.Contains(body, tt.why)
			}, func() string { return said })
			if code, body := w.get("/metrics"); code != 200 || !strings.Contains(body, "outlast_looks_total") {
				t.Errorf("/metrics meanwhile: %d %s", code, body)
			}
			f.leave("go")
			f.trace("go")
			if err := tt.heal(f); err != nil {
				t.Fatal(err)
			}
			a := f.await(id, "SUCCEEDED")
			if len(a.Tasks) != 1 || a.Tasks[0].Attempts != 1 || a.Tasks[0].Recoveries != 0 {
				t.Errorf("the job did not stay on its machine: %+v", a)
			}
			if r := f.enqueue("logs", id); !strings.Contains(r.out, "through") {
				t.Errorf("the log: %+v", r)
			}
			f.eventually("the worker to serve again", func() bool { code, _ := w.get("/readyz"); return code == 200 })
			if w.ended() {
				t.Error("the worker has ended")
			}
		})
	}
}

// Ensure that what others keep in the same database stays as it is, also under names that look like ours.
func TestForeignKeysStay(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	foreign := map[string]string{"session:7": "a", "ol:": "b", "ol:{s99}:job:1": "c", "asynq": "d", "asynq:{other}:t:1": "e", "job:1": "f"}
	for k, v := range foreign {
		if err := f.admin.Set(t.Context(), k, v, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	f.worker()
	f.await(f.launch("true"), "SUCCEEDED")
	for k, v := range foreign {
		if got, err := f.admin.Get(t.Context(), k).Result(); err != nil || got != v {
			t.Errorf("%s is %q, %v", k, got, err)
		}
	}
}
