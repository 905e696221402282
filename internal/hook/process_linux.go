package hook

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"syscall"
)

// attributes gives a callback a process group of its own, and ends it with its worker.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

const (
	maxEnviron = 8 << 20 // more than the kernel allows a process
	sweeps     = 10      // a process that forks all the time is not chased for ever
)

// endRest kills the processes that carry a variable, until none is left: those that forked away into a session of their own
// are in no group that could be killed, and the number of the group may be another's by now.
func endRest(_ int, entry string) {
	for range sweeps {
		if killMarked([]byte(entry)) == 0 {
			return
		}
	}
}

// killMarked kills them once and returns how many there were.
func killMarked(entry []byte) int {
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	found := 0
	for _, e := range proc {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || !carries(pid, entry) {
			continue
		}
		found++
		_ = syscall.Kill(pid, syscall.SIGKILL) // it has ended: what was wanted
	}
	return found
}

// carries reports whether a process was started with a variable; false for one that has ended.
func carries(pid int, entry []byte) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer f.Close()
	env, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(one, entry) {
			return true
		}
	}
	return false
}
