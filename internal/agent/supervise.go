package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// The files that a supervisor is started with, see [Program.launch].
const (
	fdLock  = 3
	fdReady = 4
)

// supervisor watches one run from its start to its end, in a process of its own. All of it is done by one
// goroutine, in the loop of [supervisor.until].
type supervisor struct {
	dir  dir
	req  StartRequest
	mark string
	pid  int      // its own
	node []string // environment of the node
	log  *os.File
	keep logKeeper
	null *os.File

	ready    *os.File // closed when the first stage runs; an error is written to it before
	children chan os.Signal
	changed  <-chan struct{} // a file of interest has changed; nil if that is not told
	every    time.Duration   // look at the files at least so often
	kills    killCounter
	lease    lease
	spared   oomScore

	stopped     bool // before the beginning
	main        mainProcess
	childless   bool // nothing of the run is left
	ending      ending
	why         string        // why it was ended, if not by a stop
	told        bool          // TERM was sent to all
	noticed     bool          // the user's code was told of the notice
	noticeKept  bool          // the notice is in its file
	noticeTerm  bool          // the main process group was told of the notice with TERM
	noticeGroup int           // process group of the script for the notice; 0 if there is none
	killPause   time.Duration // > 0 once KILL was sent
	started     int64         // Unix ms
}

// mainProcess is the process of the current stage.
type mainProcess struct {
	pid    int // 0 once it was reaped
	group  int // its process group, which what it leaves behind may still be in
	over   bool
	status syscall.WaitStatus
}

// supervise is the command of the same name, which only [Program.launch] gives.
func supervise(args []string, stdin io.Reader) error {
	if len(args) != 1 {
		return errUsage
	}
	d, err := openDir(args[0])
	if err != nil {
		return err
	}
	if !isOpenAs(fdLock, d.path(fileLock)) {
		return errors.New("supervise is an inner command of start")
	}
	lock, ready := os.NewFile(fdLock, "lock"), os.NewFile(fdReady, "ready")
	closeInherited(fdReady + 1)
	syscall.CloseOnExec(fdLock)
	syscall.CloseOnExec(fdReady)
	defer lock.Close()

	s, err := newSupervisor(d, stdin, ready)
	if err == nil {
		err = s.begin()
	}
	if err != nil { // nothing was launched
		lock.Close() // first: whoever hears of the failure may start again at once
		_, _ = fmt.Fprint(ready, err)
		return err
	}
	return s.work()
}

// isOpenAs reports whether a descriptor is the file of that name.
func isOpenAs(fd int, name string) bool {
	var open, named syscall.Stat_t
	return syscall.Fstat(fd, &open) == nil && syscall.Stat(name, &named) == nil &&
		open.Dev == named.Dev && open.Ino == named.Ino
}

// newSupervisor prepares everything that can fail before the user's code is touched.
func newSupervisor(d dir, stdin io.Reader, ready *os.File) (*supervisor, error) {
	req, err := readRequest(stdin) // cut off if whoever started was killed
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		dir: d, req: req, mark: markOf(d, req.Token), pid: os.Getpid(), node: nodeEnv(os.Environ()),
		ready: ready, children: make(chan os.Signal, 1), every: lookEvery, kills: kernelKills("/"),
		lease: newLease(time.Now()),
	}
	s.catchSignals()
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.path(dirWork), 0o700); err != nil {
		return nil, fmt.Errorf("make the work directory: %w", err)
	}
	if s.log, err = os.OpenFile(d.path(fileLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	if err = d.setGap(gap{}); err != nil { // its room is kept from the beginning: a log that fills the disk is to be cut
		return nil, err
	}
	if err = d.renewLease(); err != nil { // made now: the first poll may come to a full disk
		return nil, err
	}
	s.keep = logKeeper{limit: newLogCap(d, req.LogLimit), marks: newMarker(d)}
	if s.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	s.watchFiles()
	return s, s.reserve()
}

// reserve keeps room for the records that must be written when the user's code has filled the disk: it may have done
// so before its own process is recorded.
func (s *supervisor) reserve() error {
	return errors.Join(
		s.dir.reserve(fileRun, stageSetup), s.dir.reserve(fileRun, stageRun), s.dir.reserve(fileExit, ""))
}

// catchSignals keeps the supervisor alive through the end of a session or connection and through a TERM to all
// processes of the machine. The signals are caught and not ignored: what is ignored stays so in the user's code.
func (s *supervisor) catchSignals() {
	signal.Notify(s.children, syscall.SIGCHLD)
	unheeded := make(chan os.Signal, 1)
	signal.Notify(unheeded, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
}

// adoptOrphans makes this process the parent of whatever below it loses its own: nothing can fork away.
func adoptOrphans() error {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("become the parent of orphans: %w", errno)
	}
	return nil
}

// begin passes the point of no return: after it, nobody ever starts this attempt here again. If a stop was asked
// for before, it is not passed, and the files say that nothing ever ran.
func (s *supervisor) begin() error {
	if _, stopped := s.dir.stopAsked(); stopped {
		s.stopped = true
		return nil
	}
	rec := launchRecord{Token: s.req.Token, Mark: s.mark, Boot: bootID(), Supervisor: s.pid, LogLimit: s.req.LogLimit}
	return s.dir.create(fileLaunching, rec)
}

// work runs the stages, writes down how they ended, and stays as the dead man's switch.
func (s *supervisor) work() error {
	if s.stopped {
		return nil
	}
	s.started = time.Now().UnixMilli()
	exit := s.stages()
	s.clear()
	s.keep.end(time.Now())
	s.dir.unmount()
	if err := s.record(exit); err != nil {
		return err
	}
	s.ready.Close()
	s.powerOff()
	return nil
}

// stages runs setup and then run, as far as they go.
func (s *supervisor) stages() Exit {
	if s.req.Setup != "" {
		exit := s.stage(stageSetup, s.req.Setup)
		if exit.Code != 0 {
			return exit
		}
		if s.checkStop(time.Now()); !s.ending.stopAt.IsZero() {
			return stoppedBefore(stageRun)
		}
	}
	if s.req.Run == "" {
		return Exit{Stage: stageRun}
	}
	return s.stage(stageRun, s.req.Run)
}

// stage runs one script until its main process ends. What that leaves behind lives on: a setup may start
// services for the run.
func (s *supervisor) stage(name, script string) Exit {
	kills, _ := s.kills()
	if exit, ok := s.fork(name, script); !ok {
		return exit
	}
	s.until(func() bool { return s.main.over })
	exit := exitOf(name, s.main.status)
	exit.Text = s.why
	if now, ok := s.kills(); ok && s.ending.stopAt.IsZero() {
		exit.Memory = killedForMemory(exit, kills, now)
	}
	return exit
}

// fork starts the script of a stage and records its process.
func (s *supervisor) fork(name, script string) (exit Exit, ok bool) {
	s.keep.stage(name, time.Now())
	pid, err := s.spawn(script)
	switch {
	case errors.Is(err, errNoShell):
		return Exit{Stage: name, Code: codeNotFound, Text: err.Error()}, false
	case err != nil:
		return exitOfStart(name, err), false
	}
	s.main, s.childless = mainProcess{pid: pid, group: pid}, false
	child, _ := readProcess(pid) // it is there: only this goroutine reaps
	err = s.dir.fill(fileRun, name, runRecord{
		Stage: name, PID: pid, Ticks: child.ticks, Boot: bootID(), Supervisor: s.pid, Token: s.req.Token, Started: s.started,
	})
	if err != nil { // a run that nobody can find again must not go on
		s.ending.stop(time.Now())
		s.until(func() bool { return s.main.over })
		return Exit{Stage: name, Code: codeKill, Signal: "SIGKILL", Text: err.Error()}, false
	}
	s.ready.Close()
	return Exit{}, true
}

// spawn starts a script as the user's code, in a session of its own.
func (s *supervisor) spawn(script string) (pid int, err error) {
	shell, err := findShell(s.node)
	if err != nil {
		return 0, err
	}
	s.spared.giveBack() // the user's code is not spared
	defer func() { s.spared = takeOOMScore() }()
	return syscall.ForkExec(shell, []string{shell, "-c", "--", script}, &syscall.ProcAttr{
		Dir: s.dir.path(dirWork), Env: userEnv(s.node, s.req, s.dir),
		Files: []uintptr{s.null.Fd(), s.log.Fd(), s.log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// clear ends whatever is left of the run. It returns when nothing is, however long that takes: the exit record
// is a promise that nothing runs any more.
func (s *supervisor) clear() {
	s.reap()
	if s.childless {
		return
	}
	s.ending.mainEnded = time.Now()
	s.until(func() bool { return s.childless })
}

// record writes the exit record. It is tried for a while: a full disk may be emptied again.
func (s *supervisor) record(exit Exit) error {
	const tries = 600
	rec := exitRecord{Exit: exit, Token: s.req.Token, Started: s.started, Ended: time.Now().UnixMilli()}
	var err error
	for range tries {
		if err = s.dir.fill(fileExit, "", rec); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}
