package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process is a line of the kernel's process table.
type process struct {
	pid, ppid int
	ticks     uint64 // start time since boot: together with pid it names one process
	state     byte   // 'Z' for one that has ended and was not yet waited for
}

// ended reports whether the process runs no code any more.
func (p process) ended() bool { return p.state == 'Z' || p.state == 'X' }

// The fields of /proc/<pid>/stat that follow the command's name, counted from 0 (proc(5) counts from 3).
const (
	statState = 0
	statPPID  = 1
	statTicks = 19
)

// parseStat reads /proc/<pid>/stat. The command's name in it is untrusted and may hold spaces and brackets,
// so fields are counted from its last closing bracket.
func parseStat(pid int, text string) (process, error) {
	end := strings.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, fmt.Errorf("process %d: no name in %q", pid, text)
	}
	fields := strings.Fields(text[end+1:])
	if len(fields) <= statTicks {
		return process{}, fmt.Errorf("process %d: only %d fields", pid, len(fields))
	}
	ppid, err := strconv.Atoi(fields[statPPID])
	if err != nil {
		return process{}, fmt.Errorf("process %d: parent: %w", pid, err)
	}
	ticks, err := strconv.ParseUint(fields[statTicks], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("process %d: start time: %w", pid, err)
	}
	return process{pid: pid, ppid: ppid, ticks: ticks, state: fields[statState][0]}, nil
}

// lookup returns the process with that id, or an error that wraps os.ErrNotExist.
func lookup(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	switch {
	case errors.Is(err, syscall.ESRCH): // it ended between open and read
		return process{}, fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	case err != nil:
		return process{}, fmt.Errorf("process table: %w", err)
	}
	return parseStat(pid, string(text))
}

// processes lists all processes of this computer. Those that end meanwhile may be missing.
func processes() ([]process, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("process table: %w", err)
	}
	defer func() { _ = proc.Close() }() // was only read
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("process table: %w", err)
	}
	var all []process
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue // not a process
		}
		p, err := lookup(pid)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// carries reports whether the process was started with that NAME=value in its environment. One that
// has ended, or belongs to somebody else, was not.
func (p process) carries(entry string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	if err != nil {
		return false
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if string(e) == entry {
			return true
		}
	}
	return false
}

// signal sends sig to p and to no other process that has got the same id by now. A process that is gone is a success.
func (p process) signal(sig syscall.Signal) error {
	handle, err := os.FindProcess(p.pid) // a pidfd: from here on it cannot be another one
	if err != nil {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	defer func() { _ = handle.Release() }() // it is not a child that anybody waits for through this handle
	if now, err := lookup(p.pid); err != nil || now.ticks != p.ticks {
		return nil
	}
	if err := handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", p.pid, err)
	}
	return nil
}

// identity names one process for good: ids are used again, and start times begin anew with each boot.
type identity struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"`
	Boot  string `json:"boot"`
}

// bootID names this run of the computer.
func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// self is the identity of the calling process.
func self() (identity, error) {
	boot, err := bootID()
	if err != nil {
		return identity{}, err
	}
	p, err := lookup(os.Getpid())
	if err != nil {
		return identity{}, err
	}
	return identity{PID: p.pid, Ticks: p.ticks, Boot: boot}, nil
}

// find returns the process that id names, or false if it has ended.
func (id identity) find(boot string) (process, bool, error) {
	if id.PID <= 0 || id.Boot != boot {
		return process{}, false, nil
	}
	p, err := lookup(id.PID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return process{}, false, nil
	case err != nil:
		return process{}, false, err
	}
	return p, p.ticks == id.Ticks && !p.ended(), nil
}
