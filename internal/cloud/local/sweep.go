package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// envInstance marks every process of a machine with the machine's id, which is unique on this computer.
const envInstance = "OUTLAST_INSTANCE"

const (
	sweepLimit = 5 * time.Second      // a process that takes longer to die hangs in the kernel: look again later
	sweepPause = 2 * time.Millisecond // between looks at the process table, for signals to take effect
)

// belonging selects the living processes of a machine: the descendants of the process root, those that are
// marked, and the descendants of these. Neither root nor the process spare is among them.
func belonging(all []process, root, spare int, marked func(process) bool) []process {
	children := make(map[int][]process, len(all))
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []process
	seen := map[int]bool{root: true}
	var add func(p process)
	add = func(p process) {
		if seen[p.pid] {
			return
		}
		seen[p.pid] = true
		if p.pid != spare && !p.ended() {
			found = append(found, p)
		}
		for _, c := range children[p.pid] {
			add(c)
		}
	}
	if root > 0 { // 0 would be the parent of all
		for _, c := range children[root] {
			add(c)
		}
	}
	for _, p := range all {
		if !seen[p.pid] && !p.ended() && marked(p) {
			add(p)
		}
	}
	return found
}

// sweep ends every process of the machine id and returns when none is left; init goes last. It may run in several
// processes at once. If init is the caller itself, it is left.
func sweep(ctx context.Context, id string, init identity, boot string) error {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	pause := time.NewTicker(sweepPause)
	defer pause.Stop()
	stopped := make(map[process]bool)
	for {
		done, err := sweepOnce(id, init, boot, stopped)
		if err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes of machine %s are still there: %w", id, context.Cause(ctx))
		case <-pause.C:
		}
	}
}

// sweepOnce looks at the process table and takes the next step: stop those that are new, or kill those that
// are stopped, or kill init. It reports whether there was nothing left to do.
func sweepOnce(id string, init identity, boot string, stopped map[process]bool) (bool, error) {
	root, alive, err := init.find(boot)
	if err != nil {
		return false, err
	}
	all, err := processes()
	if err != nil {
		return false, err
	}
	me := os.Getpid()
	ownRoot := 0
	if alive {
		ownRoot = root.pid
	}
	victims := belonging(all, ownRoot, me, func(p process) bool { return p.carries(envInstance + "=" + id) })
	fresh := unstopped(victims, stopped)
	if alive && root.pid != me {
		fresh = append(fresh, unstopped([]process{root}, stopped)...)
	}
	switch {
	case len(fresh) > 0:
		return false, signalAll(fresh, syscall.SIGSTOP)
	case len(victims) > 0:
		return false, signalAll(victims, syscall.SIGKILL)
	case alive && root.pid != me:
		return false, signalAll([]process{root}, syscall.SIGKILL)
	default:
		return true, nil
	}
}

// unstopped selects those of found that are not in stopped yet, and adds them. Being stopped does not last for one that
// somebody continues, but then it is killed all the same.
func unstopped(found []process, stopped map[process]bool) []process {
	var fresh []process
	for _, p := range found {
		key := process{pid: p.pid, ticks: p.ticks}
		if !stopped[key] {
			stopped[key] = true
			fresh = append(fresh, p)
		}
	}
	return fresh
}

func signalAll(all []process, sig syscall.Signal) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.signal(sig))
	}
	return errors.Join(errs...)
}
