package agent

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// killCounter counts the processes that the kernel has killed for memory around here. ok is false if it can
// not be told.
type killCounter func() (kills uint64, ok bool)

// kernelKills counts within the control group of this process (version 2 or 1), or on the whole machine if
// the group does not count. root is "/" but in tests.
func kernelKills(root string) killCounter {
	return func() (uint64, bool) {
		groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
		for _, file := range killFiles(groups) {
			if n, ok := readKills(filepath.Join(root, file)); ok {
				return n, true
			}
		}
		return readKills(filepath.Join(root, "proc/vmstat"))
	}
}

// killFiles names the files that may count, from /proc/self/cgroup with its lines of number:controllers:path.
func killFiles(groups []byte) []string {
	var files []string
	lines := bufio.NewScanner(bytes.NewReader(groups))
	for lines.Scan() {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		path := filepath.Join("/", parts[2]) // may not lead out of the file system of groups
		switch parts[1] {
		case "":
			files = append(files, filepath.Join("sys/fs/cgroup", path, "memory.events"))
		case "memory":
			files = append(files,
				filepath.Join("sys/fs/cgroup/memory", path, "memory.oom_control"),
				"sys/fs/cgroup/memory/memory.oom_control") // as a container sees its own group
		}
	}
	return files
}

// readKills finds the line "oom_kill N".
func readKills(file string) (uint64, bool) {
	text, err := readBounded(file, 1<<20)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// killedForMemory reports whether an exit that looks like a KILL was the kernel's.
func killedForMemory(exit Exit, before, after uint64) bool {
	return exit.Code == codeKill && after > before // without a signal too: a shell passes on what ended its child
}
