package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// birthOf returns when a process was started, in clock ticks since the system was, or errNoProcess.
func birthOf(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, errNoProcess
	}
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// parseStat reads a line of /proc/pid/stat. The name of the process comes second, in parentheses, and may hold anything.
func parseStat(stat []byte) (uint64, error) {
	const state, birth = 0, 19 // fields 3 and 22, counted from after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= birth {
		return 0, errors.New("cannot read the state of a process")
	}
	if s := fields[state][0]; s == 'Z' || s == 'X' { // it has ended, its parent has not looked yet
		return 0, errNoProcess
	}
	return strconv.ParseUint(string(fields[birth]), 10, 64)
}
