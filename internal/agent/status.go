package agent

import (
	"fmt"
	"io"
	"os"
	"time"
)

// facts are what the files of an attempt say.
type facts struct {
	claim  *claimRecord
	launch *launchRecord
	run    *runRecord
	exit   *exitRecord
	notice *Notice
	stop   bool
}

// load reads a record, or returns nil if there is no whole one.
func load[T any](d dir, name string) *T {
	var v T
	if !d.read(name, &v) {
		return nil
	}
	return &v
}

func (d dir) facts() facts {
	f := facts{stop: d.has(fileStop), exit: load[exitRecord](d, fileExit)}
	if n := load[userNotice](d, fileNotice); n != nil {
		f.notice = &n.Notice
	}
	if f.exit != nil {
		return f // the rest adds nothing to it
	}
	f.claim = load[claimRecord](d, fileClaimed)
	if d.has(fileLaunching) {
		if f.launch = load[launchRecord](d, fileLaunching); f.launch == nil {
			f.launch = &launchRecord{} // cut off by a crash: of an earlier boot, and that it was begun is what counts
		}
		f.run = load[runRecord](d, fileRun)
	}
	return f
}

// token returns that of the attempt, "" if the directory belongs to none yet.
func (f facts) token() string {
	switch {
	case f.exit != nil:
		return f.exit.Token
	case f.launch != nil && f.launch.Token != "":
		return f.launch.Token
	case f.claim != nil:
		return f.claim.Token
	default:
		return ""
	}
}

// stoppedBefore is the exit of what was stopped before it ran.
func stoppedBefore(stage string) Exit {
	return Exit{Stage: stage, Code: codeTerm, Signal: "SIGTERM", Text: "stopped before it was started"}
}

// judge says what the files mean. held tells whether a supervisor, or somebody who is about to become one, has
// the lock; alive, whether a process of the run lives (asked only if it matters).
func (f facts) judge(held bool, alive func() (bool, error)) (Status, error) {
	st := Status{Token: f.token(), Stopped: f.stop, Notice: f.notice}
	if f.run != nil {
		st.Started = f.run.Started
	}
	switch {
	case f.exit != nil:
		exit := f.exit.Exit
		st.State, st.Exit, st.Started, st.Ended = Exited, &exit, f.exit.Started, f.exit.Ended
	case held && f.run == nil:
		st.State = Starting
	case held && f.run.Stage == stageSetup:
		st.State = Setup
	case held:
		st.State = Running
	case f.launch == nil && f.stop: // and it never will: no start gets past a stop
		exit := stoppedBefore(stageSetup)
		st.State, st.Exit = Exited, &exit
	case f.launch == nil:
		st.State = Absent
	default:
		living, err := alive()
		if err != nil {
			return Status{}, err
		}
		st.State = Lost
		if living {
			st.State = Unsupervised
		}
	}
	return st, nil
}

// judgeUnlocked judges facts that were read while nobody but perhaps the caller held the lock.
func (f facts) judgeUnlocked() (Status, error) {
	return f.judge(false, func() (bool, error) {
		none, err := f.launch.nothingRemains(f.run)
		return !none, err
	})
}

// look returns the status of an attempt, without its log.
//
// The order of its steps matters. If "launching" is there before the lock is seen to be free, then whoever made
// it is dead, and what is read afterwards is final. If it turns up only afterwards a start came in between, and
// the look is taken again.
func (d dir) look() (Status, error) {
	for {
		launched := d.has(fileLaunching)
		held, err := lockHeld(d.path(fileLock))
		if err != nil {
			return Status{}, err
		}
		f := d.facts()
		switch {
		case held:
			return f.judge(held, nil)
		case launched || f.launch == nil:
			return f.judgeUnlocked()
		}
	}
}

// MaxLog is the most bytes of the log that one poll returns.
const MaxLog = 1 << 20

// poll is one look at an attempt by somebody who will look again.
func poll(d dir, offset, limit int64) (Status, error) {
	if err := d.renewLease(); err != nil {
		return Status{}, err
	}
	// The state first: once it says that the run has ended, the log read after it is the whole one.
	st, err := d.look()
	if err != nil {
		return Status{}, err
	}
	if st.State == Unsupervised {
		if launch := load[launchRecord](d, fileLaunching); launch != nil {
			_ = d.capUnsupervised(launch.LogLimit) // tried again by the next poll
		}
	}
	now := time.Now()
	st.Clock = now.UnixMilli()
	if err := d.readLog(&st, offset, min(limit, MaxLog)); err != nil {
		return st, err
	}
	var end int64
	st.LogMarks, end = d.marks(st.LogOffset, st.LogOffset+int64(len(st.Log)), maxMarks, now)
	st.Log = st.Log[:end-st.LogOffset]
	return st, nil
}

// renewLease tells a supervisor that somebody still cares. It makes no directory.
func (d dir) renewLease() error {
	now := time.Now()
	err := os.Chtimes(d.path(fileLease), now, now)
	if !os.IsNotExist(err) {
		return err
	}
	f, err := os.OpenFile(d.path(fileLease), os.O_CREATE|os.O_WRONLY, 0o600)
	if os.IsNotExist(err) {
		return nil // nothing was ever started here
	}
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	return f.Close()
}

// readLog adds a part of the log to a status. An offset beyond its end yields nothing, one within the gap what comes after
// it.
func (d dir) readLog(st *Status, offset, limit int64) error {
	f, err := os.Open(d.path(fileLog))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer f.Close()
	for g := d.gap(); ; {
		if err := readOutside(st, f, g, offset, limit); err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		now := d.gap()
		if now == g {
			break
		}
		g = now // what was read may have been dropped meanwhile
	}
	return nil
}

// readOutside reads a part of the log, given what was dropped of it.
func readOutside(st *Status, f *os.File, g gap, offset, limit int64) error {
	st.LogGap, st.Log = nil, nil
	if g.To > g.From {
		st.LogGap = &Gap{From: g.From, To: g.To}
	}
	if g.Cutting > 0 { // soon over
		st.LogSize, st.LogOffset = g.To, min(offset, g.To)
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st.LogSize = max(g.size(info.Size()), g.To)
	st.LogOffset = g.skip(min(offset, st.LogSize))
	most := min(limit, g.span(st.LogOffset, st.LogSize))
	st.Log, err = io.ReadAll(io.NewSectionReader(f, g.inFile(st.LogOffset), most))
	return err
}
