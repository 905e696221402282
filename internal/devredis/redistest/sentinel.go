package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Watched is a master with replicas that Sentinels watch.
type Watched struct {
	Master    *Server
	Replicas  []*Server
	Sentinels []*Server
	tb        testing.TB
}

// MasterName is what the Sentinels call the master.
const MasterName = "outlast"

// SentinelPassword is what the Sentinels of [StartSentinel] ask for: another one than the servers'.
const SentinelPassword = "word-of-the-sentinels"

// StartSentinel runs a master, n replicas and three Sentinels until the end of the test. They take a master for dead that is
// silent for a second.
func StartSentinel(tb testing.TB, replicas int, with ...Option) *Watched {
	tb.Helper()
	w := &Watched{tb: tb}
	with = append([]Option{TCP(), Set("--repl-diskless-sync-delay", "0", "--replica-serve-stale-data", "no")}, with...)
	w.Master = Start(tb, with...)
	for range replicas {
		r := Start(tb, append(with, Set("--replicaof", fmt.Sprintf("127.0.0.1 %d", w.Master.port)))...)
		w.Replicas = append(w.Replicas, r)
	}
	for range 3 {
		w.Sentinels = append(w.Sentinels, w.sentinel())
	}
	until(tb, "the replicas to follow", func() bool {
		return strings.Count(w.Master.do("INFO", "replication"), "state=online") == replicas
	})
	for _, s := range w.Sentinels {
		until(tb, "the Sentinels to know all", func() bool {
			info := s.do("SENTINEL", "MASTER", MasterName)
			return strings.Contains(info, fmt.Sprintf("num-slaves:%d", replicas)) && strings.Contains(info, "num-other-sentinels:2")
		})
	}
	return w
}

// sentinel starts one. It keeps what it knows in its configuration file.
func (w *Watched) sentinel() *Server {
	w.tb.Helper()
	s := prepare(w.tb, nil)
	s.port, s.password = FreePort(w.tb), SentinelPassword
	lines := []string{
		fmt.Sprintf("port %d", s.port), "bind 127.0.0.1", "dir " + s.config.Dir,
		"unixsocket " + s.config.Socket, "unixsocketperm 600",
		"requirepass " + SentinelPassword, "sentinel sentinel-pass " + SentinelPassword,
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, w.Master.port),
		"sentinel down-after-milliseconds " + MasterName + " 1000",
		"sentinel failover-timeout " + MasterName + " 10000",
	}
	if w.Master.password != "" {
		lines = append(lines, "sentinel auth-pass "+MasterName+" "+w.Master.password)
	}
	path := filepath.Join(s.config.Dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		w.tb.Fatal(err)
	}
	s.config.Bare = []string{path, "--sentinel"}
	s.Restart()
	return s
}

// Hosts are the addresses of the Sentinels, as a URL has them.
func (w *Watched) Hosts() string {
	var all []string
	for _, s := range w.Sentinels {
		all = append(all, s.Address())
	}
	return strings.Join(all, ",")
}

// Current is the server that the Sentinels call the master.
func (w *Watched) Current() *Server {
	w.tb.Helper()
	said := w.Sentinels[0].do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
	for _, s := range append([]*Server{w.Master}, w.Replicas...) {
		if strings.Contains(said, strconv.Itoa(s.port)) {
			return s
		}
	}
	w.tb.Fatalf("the Sentinels call %s the master", said)
	return nil
}

// AwaitFailover waits until every Sentinel calls another server than this one the master, which says so itself.
func (w *Watched) AwaitFailover(from *Server) *Server {
	w.tb.Helper()
	for _, s := range w.Sentinels {
		until(w.tb, "the Sentinels to choose another master", func() bool {
			return !strings.Contains(s.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName), strconv.Itoa(from.port))
		})
	}
	now := w.Current()
	until(w.tb, "the new master to be one", func() bool { return strings.Contains(now.do("ROLE"), "master") })
	return now
}
