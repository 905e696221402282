package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// masterName is what the Sentinels call the deployment's Redis.
const masterName = "outlast"

// sentinels watch over a master and a replica. Each of the two is known to everybody at the address of its proxy.
type sentinels struct {
	servers []*server
	links   []*link // one for each server
	watch   []*process
	ports   []int
	files   []string
	admin   *redis.SentinelClient
}

const (
	sentinelCount = 3
	sentinelDown  = 1500 * time.Millisecond // without an answer, after which a master counts as down
)

// newSentinels starts a master, its replica, and those who watch over them.
func newSentinels(ctx context.Context, under string, n *network) (*sentinels, error) {
	s := &sentinels{}
	for i := range 2 {
		one, err := newServer(under, fmt.Sprintf("redis-%d", i+1))
		if err != nil {
			return s, err
		}
		l, err := n.link(one.name, one.addr())
		if err != nil {
			return s, err
		}
		host, port, _ := net.SplitHostPort(l.listen)
		one.extra = []string{"--replica-announce-ip", host, "--replica-announce-port", port, "--repl-diskless-sync-delay", "0", "--repl-timeout", "5"}
		s.servers, s.links = append(s.servers, one), append(s.links, l)
		if err := one.start(ctx); err != nil {
			return s, err
		}
	}
	host, port, _ := net.SplitHostPort(s.links[0].listen)
	if err := s.servers[1].admin.ReplicaOf(ctx, host, port).Err(); err != nil {
		return s, fmt.Errorf("make %s a replica: %w", s.servers[1].name, err)
	}
	for i := range sentinelCount {
		if err := s.addWatch(under, i, host, port); err != nil {
			return s, err
		}
	}
	s.admin = redis.NewSentinelClient(&redis.Options{
		Addr: "127.0.0.1:" + strconv.Itoa(s.ports[0]), DialTimeout: time.Second, ReadTimeout: time.Second, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return s, s.settled(ctx)
}

func (s *sentinels) addWatch(under string, i int, host, port string) error {
	own, err := freePort()
	if err != nil {
		return err
	}
	dir := filepath.Join(under, fmt.Sprintf("sentinel-%d", i+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of a sentinel: %w", err)
	}
	file := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s %d\nsentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s 5000\n",
		own, dir, masterName, host, port, sentinelCount/2+1, masterName, sentinelDown.Milliseconds(), masterName)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	s.ports, s.files = append(s.ports, own), append(s.files, file)
	s.watch = append(s.watch, nil)
	return s.startWatch(i)
}

// startWatch starts a Sentinel, again if it was killed.
func (s *sentinels) startWatch(i int) error {
	p, err := start(exec.Command("redis-server", s.files[i], "--sentinel"), filepath.Join(filepath.Dir(s.files[i]), "redis.log"))
	if err != nil {
		return err
	}
	s.watch[i] = p
	return nil
}

// way makes links of its own for one party, to each server and to each Sentinel, and tells where it finds the latter. What
// they tell it of addresses is put right on the way, so that it finds all others by links of its own, too.
func (s *sentinels) way(n *network, name string) (way, string, error) {
	var all, ears way
	var hosts []string
	ports := map[string]string{}
	to := func(what, listen, upstream string) (*link, error) {
		l, err := n.link(name+" to "+what, upstream)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
		ports[portOf(listen)] = portOf(l.listen)
		return l, nil
	}
	for i, one := range s.servers {
		if _, err := to(one.name, s.links[i].listen, one.addr()); err != nil {
			return all, "", err
		}
	}
	for i, port := range s.ports {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := to(fmt.Sprintf("sentinel-%d", i+1), addr, addr)
		if err != nil {
			return all, "", err
		}
		ears, hosts = append(ears, l), append(hosts, l.listen)
	}
	_, err := ears.each(func(l *link) (func() error, error) { return l.renames(ports) })
	return all, "redis+sentinel://" + strings.Join(hosts, ",") + "/" + masterName, err
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// settled waits until the Sentinels know the replica and each other, so that a failover is possible.
func (s *sentinels) settled(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, redisPatience)
	defer done()
	var why error
	for {
		why = s.ready(ctx)
		if why == nil {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the sentinels do not come together: %w", why)
		}
	}
}

func (s *sentinels) ready(ctx context.Context) error {
	m, err := s.admin.Master(ctx, masterName).Result()
	if err != nil {
		return err
	}
	if m["num-slaves"] != "1" || m["num-other-sentinels"] != strconv.Itoa(sentinelCount-1) || m["flags"] != "master" {
		return fmt.Errorf("%s replicas, %s other sentinels, flags %s", m["num-slaves"], m["num-other-sentinels"], m["flags"])
	}
	now, err := s.master(ctx)
	if err != nil {
		return err
	}
	info, err := s.other(now).admin.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, "role:slave") || !strings.Contains(info, "master_link_status:up") {
		return errors.New("the replica has no link to its master")
	}
	return nil
}

// master is the server that the Sentinels call master now.
func (s *sentinels) master(ctx context.Context) (*server, error) {
	at, err := s.admin.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, fmt.Errorf("ask for the master: %w", err)
	}
	for i, l := range s.links {
		if net.JoinHostPort(at[0], at[1]) == l.listen {
			return s.servers[i], nil
		}
	}
	return nil, fmt.Errorf("the master is at %v, which is nobody's address", at)
}

// linkOf is the way of the replica and the Sentinels to a server.
func (s *sentinels) linkOf(one *server) *link {
	for i, other := range s.servers {
		if other == one {
			return s.links[i]
		}
	}
	return nil
}

// other is the server that is not the one.
func (s *sentinels) other(one *server) *server {
	if s.servers[0] == one {
		return s.servers[1]
	}
	return s.servers[0]
}

// caughtUp holds all writes back, and waits until the replica has those that were answered. What is lost by a failover then
// was never acknowledged. Without it a failover may lose the last moment, as the documentation says.
func (s *sentinels) caughtUp(ctx context.Context, master *server) error {
	c := master.admin.Conn()
	defer func() { _ = c.Close() }()
	if err := c.Process(ctx, redis.NewStatusCmd(ctx, "client", "pause", "20000", "write")); err != nil {
		return fmt.Errorf("hold writes back: %w", err)
	}
	for range 100 {
		mine, err := offset(ctx, master, "master_repl_offset")
		if err != nil {
			return err
		}
		theirs, err := offset(ctx, s.other(master), "slave_repl_offset")
		if err != nil {
			return err
		}
		if theirs >= mine {
			return nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			break
		}
	}
	return errors.New("the replica does not catch up")
}

// goOn lets writes through again, after a failover that was not begun.
func goOn(ctx context.Context, master *server) error {
	if err := master.admin.Do(ctx, "client", "unpause").Err(); err != nil {
		return fmt.Errorf("let writes through: %w", err)
	}
	return nil
}

func offset(ctx context.Context, s *server, field string) (int64, error) {
	info, err := s.admin.Info(ctx, "replication").Result()
	if err != nil {
		return 0, fmt.Errorf("ask %s how far it is: %w", s.name, err)
	}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s does not say its %s", s.name, field)
}

// switched waits until another server than the old one is master.
func (s *sentinels) switched(ctx context.Context, old *server) error {
	ctx, done := context.WithTimeout(ctx, redisPatience)
	defer done()
	for {
		now, err := s.master(ctx)
		if err == nil && now != old {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return errors.Join(errors.New("the sentinels made no other master"), err)
		}
	}
}

func (s *sentinels) stop() error {
	if s == nil {
		return nil
	}
	for _, p := range s.watch {
		if p != nil {
			p.kill()
		}
	}
	var errs []error
	if s.admin != nil {
		errs = append(errs, s.admin.Close())
	}
	for i, one := range s.servers {
		errs = append(errs, one.stop())
		s.links[i].close()
	}
	return errors.Join(errs...)
}
