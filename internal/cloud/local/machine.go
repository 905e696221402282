package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
)

// MachineMain is the main function of a machine's own processes; the arguments follow [Config.Machine]. It returns
// the exit code.
//
//	init DIR       is the machine in DIR; the lock of the machine is on descriptor 3
//	poweroff DIR   makes it end
func MachineMain(args []string) int {
	err := errors.New("usage: init DIR | poweroff DIR")
	if len(args) == 2 {
		switch args[0] {
		case "init":
			err = runInit(args[1])
		case "poweroff":
			err = powerOff(args[1], time.Now())
		}
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "machine:", err) // there is nowhere else to say it
		return 1
	}
	return 0
}

// powerOff leaves word for init, which looks every tick.
func powerOff(dir string, now time.Time) error {
	in, err := openInstance(dir)
	if err != nil {
		return err
	}
	return in.finish(end{State: cloud.Terminated, Reason: "it powered itself off", At: now.UTC()})
}

// tick is how often init looks for a word about its end.
const tick = 100 * time.Millisecond

// initProcess is the first process of a machine and the parent of all others.
type initProcess struct {
	instance
	me      identity
	orphans map[process]bool // zombies seen at the last look
	quiet   atomic.Bool      // it is going down
}

// runInit is the life of a machine.
func runInit(dir string) error {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT)
	shutdown := make(chan os.Signal, 1)
	signal.Notify(shutdown, syscall.SIGTERM)
	m, err := beginInit(dir)
	if err != nil {
		return err
	}
	booted := time.NewTimer(m.Boot)
	defer booted.Stop()
	look := time.NewTicker(tick)
	defer look.Stop()
	for {
		select {
		case <-booted.C:
			if err := m.listen(); err != nil {
				return errors.Join(err, m.takeDown())
			}
		case <-shutdown:
			over := end{State: cloud.Preempted, Reason: "the computer is shutting down", At: time.Now().UTC()}
			return errors.Join(m.finish(over), m.takeDown())
		case now := <-look.C:
			over, err := m.over(now)
			if over {
				return errors.Join(err, m.takeDown())
			}
			if err := m.reap(); err != nil {
				_, _ = fmt.Fprintln(os.Stderr, "machine:", err) // zombies are no reason to end
			}
		}
	}
}

// beginInit makes the calling process the init of the machine in dir.
func beginInit(dir string) (*initProcess, error) {
	syscall.CloseOnExec(lockFD) // the lock is held by init alone, so that its being free means that init is dead
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	in, err := openInstance(dir)
	if err != nil {
		return nil, err
	}
	me, err := self()
	if err != nil {
		return nil, err
	}
	if err := writeFile(dir, fileInit, me); err != nil {
		return nil, err
	}
	// Whoever ends a machine first says so and then looks for its processes. This one can be found by now, so if
	// the word came too early for its eyes, it did not come too early for ours.
	if over, err := exists(in.path(fileEnd)); err != nil || over {
		return nil, errors.Join(err, errors.New("it was ended before it began"))
	}
	return &initProcess{instance: in, me: me}, nil
}

// over reports whether the machine has to end now, and records why if nobody has.
func (m *initProcess) over(now time.Time) (bool, error) {
	if there, err := exists(m.path(fileInstance)); err == nil && !there {
		return true, errors.New("its directory was removed")
	}
	if ended, err := exists(m.path(fileEnd)); err == nil && ended {
		return true, nil
	}
	n, err := readOptional[agent.Notice](m.dir, fileNotice)
	if err != nil || n == nil || now.UnixMilli() < n.Deadline {
		return false, err
	}
	return true, m.finish(end{State: cloud.Preempted, Reason: takenReason(*n), At: now.UTC()})
}

// takeDown ends everything on the machine but init, which ends next. Whoever lists it then sees that nothing is left.
// Commands get no answer from here on: that they were killed with the machine must not pass for their own end.
func (m *initProcess) takeDown() error {
	m.quiet.Store(true)
	return sweep(context.Background(), m.ID, m.me, m.me.Boot)
}

// reap takes the exit codes of processes that lost their parents. A child that somebody here waits for is never a
// zombie for long, so one that is seen twice is nobody's.
func (m *initProcess) reap() error {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if errors.Is(err, unix.ECHILD) || (err == nil && info.Signo == 0) {
		clear(m.orphans)
		return nil // the usual case, without a look at the process table
	}
	all, err := processes()
	if err != nil {
		return err
	}
	zombies := make(map[process]bool)
	for _, p := range all {
		if p.ppid != m.me.PID || !p.ended() {
			continue
		}
		if !m.orphans[p] {
			zombies[p] = true
			continue
		}
		if _, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil); err != nil && !errors.Is(err, syscall.ECHILD) {
			return fmt.Errorf("wait for process %d: %w", p.pid, err)
		}
	}
	m.orphans = zombies
	return nil
}

// listen begins to serve commands. That its socket is there is what makes the machine a running one.
func (m *initProcess) listen() error {
	l, err := listenIn(m.dir)
	if err != nil {
		return err
	}
	s := server{
		home:  filepath.Join(m.dir, dirHome),
		agent: agent.Program{Self: []string{"/proc/self/exe", "agent"}}.Main,
		quiet: &m.quiet,
		log:   func(err error) { _, _ = fmt.Fprintln(os.Stderr, "machine:", err) },
	}
	go s.serve(l)
	return nil
}

// program is a command that runs within init; see [agent.Program.Main].
type program func(args []string, stdin io.Reader, stdout, stderr io.Writer) int
