package agent

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// stop asks the run to end, and returns at once: poll tells when it is over. Before the start it forbids the
// start. It may be repeated, also with a shorter grace; a longer one changes nothing.
func (p Program) stop(d dir, grace time.Duration) (Status, error) {
	if err := d.make(); err != nil {
		return Status{}, err
	}
	if d.has(fileExit) {
		return d.look()
	}
	if before, asked := d.stopAsked(); !asked || grace < before {
		if err := d.replace(fileStop, stopRecord{GraceMillis: grace.Milliseconds()}); err != nil {
			return Status{}, err
		}
	}
	st, err := d.look()
	if err == nil && st.State == Unsupervised {
		err = p.detach([]string{"sweep", string(d)}, nodeEnv(os.Environ()), nil)
		if err != nil {
			err = fmt.Errorf("start to end what has no supervisor: %w", err)
		}
	}
	return st, err
}

// sweepPause is the time between two looks at processes that are not ours to wait for.
const sweepPause = 20 * time.Millisecond

// sweep is an inner command of stop: it ends what still runs of an attempt whose supervisor is dead.
func sweep(args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	d, err := openDir(args[0])
	if err != nil {
		return err
	}
	lock, err := tryLock(d.path(fileSweep))
	if err != nil || lock == nil {
		return err // nil: somebody else does it
	}
	defer lock.Close()
	f := d.facts()
	if f.launch == nil {
		return nil
	}
	var e ending
	for told := false; ; told = true {
		left, err := f.launch.remains(f.run)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			if none, err := f.launch.nothingRemains(f.run); none || err != nil {
				return err
			}
		}
		now := time.Now()
		if grace, asked := d.stopAsked(); asked {
			e.stop(now.Add(grace))
		}
		switch {
		case e.killing(now):
			signalEach(left, syscall.SIGKILL)
		case !told:
			signalEach(left, syscall.SIGTERM)
		}
		time.Sleep(sweepPause)
	}
}

func signalEach(all []process, sig syscall.Signal) {
	for _, p := range all {
		p.signal(sig)
	}
}
