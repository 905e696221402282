package lease

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/devredis/redistest"
)

const (
	sleeperArg = "sleeper"
	sleeperTTL = 500 * time.Millisecond
)

// sleeperMain is a driver that holds the lease of a running server, is stopped, and asks about the lease as soon as it runs
// again. It prints each of these.
func sleeperMain(args []string) int {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: args[0], ContextTimeoutEnabled: true})
	defer rdb.Close()
	began := time.Now()
	if err := rdb.Set(context.Background(), key, "mine", sleeperTTL).Err(); err != nil {
		fmt.Println(err)
		return 1
	}
	_, l := NewKeeper(rdb, sleeperTTL).Keep(context.Background(), key, "mine", began, nil)
	defer l.Release()
	fmt.Println(l.Check())

	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-woken // the stop is on its way, and this goroutine goes no further before it
	fmt.Println(l.Check())
	return 0
}

// Ensure that a driver which was frozen for longer than its lease knows so with the first thing it asks, when somebody else
// holds the lease already (G2).
func TestG2_FrozenDriverKnowsThatItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], sleeperArg, srv.Options().Addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	if said.Scan(); said.Text() != fmt.Sprint(error(nil)) {
		t.Fatalf("before the freeze: %q", said.Text())
	}
	until(t, "the driver to stand still", func() bool { return stopped(cmd.Process.Pid) })
	rival := NewKeeper(srv.Client(t), time.Minute).locks.NewMutex(key, redsync.WithExpiry(time.Minute), redsync.WithTries(1))
	until(t, "the lease to run out", func() bool { return rival.TryLockContext(t.Context()) == nil })
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if said.Scan(); said.Text() != ErrLost.Error() {
		t.Errorf("after the freeze: %q, want %q", said.Text(), ErrLost)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// stopped reports whether a process stands still.
func stopped(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	return b[bytes.LastIndexByte(b, ')')+2] == 'T'
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.After(patience)
	for !holds() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		}
	}
}
