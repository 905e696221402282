package agent

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// process is a line of /proc/PID/stat.
type process struct {
	pid, ppid, group, session int
	state                     byte   // 'R', 'S', ..., 'Z' for one that ended and was not waited for
	ticks                     uint64 // start time, in clock ticks since boot
}

// ended reports whether the process runs no code any more, although its number is still taken.
func (p process) ended() bool { return p.state == 'Z' || p.state == 'X' || p.state == 'x' }

// parseStat reads a line of /proc/PID/stat. The name of the program stands in parentheses and may hold anything,
// more parentheses and line breaks too, so the fields are counted from its last one.
func parseStat(line []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return process{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:open])))
	fields := bytes.Fields(line[end+1:]) // fields[0] is field 3 of proc_pid_stat(5)
	if err != nil || len(fields) < 20 || len(fields[0]) != 1 {
		return process{}, false
	}
	number := func(i int) int {
		n, bad := strconv.Atoi(string(fields[i]))
		if bad != nil {
			err = bad
		}
		return n
	}
	p = process{pid: pid, state: fields[0][0], ppid: number(1), group: number(2), session: number(3)}
	ticks, bad := strconv.ParseUint(string(fields[19]), 10, 64)
	p.ticks = ticks
	return p, err == nil && bad == nil
}

// readProcess looks at one process.
func readProcess(pid int) (process, bool) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(line)
}

// processes lists all processes of this machine that can be seen. It is not a picture of one moment.
func processes() ([]process, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// bootID names this boot of the machine: no process survives a change of it. It is "" if there is none to read.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// identity tells a process from all others of this boot.
type identity struct {
	pid   int
	ticks uint64
}

func (p process) id() identity { return identity{p.pid, p.ticks} }
