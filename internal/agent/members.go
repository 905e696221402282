package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// envMark is the variable that every process of a run inherits.
const envMark = "OUTLAST_RUN"

// markOf names a run in the environment of its processes. The directory is part of it, since the nodes of one
// attempt have the same token and may share a computer.
func markOf(d dir, token string) string {
	sum := sha256.Sum256([]byte(string(d) + "\x00" + token))
	return hex.EncodeToString(sum[:16])
}

// maxEnviron is more than the 6 MB of arguments and environment that the kernel allows a process.
const maxEnviron = 8 << 20

// carries reports whether a process was started with the mark. For an ended process it is false.
func carries(pid int, mark string) bool {
	env, err := readBounded(fmt.Sprintf("/proc/%d/environ", pid), maxEnviron)
	if err != nil || len(env) == 0 {
		return false
	}
	want := []byte(envMark + "=" + mark)
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

// nobody is the root of no process. (0 is the parent of the first process, and so the root of all.)
const nobody = -1

// members selects from all processes the living descendants of root, those that own accepts, and the
// descendants of these; root itself is not among them. Parents come before their children: a shell whose child
// is ended first would go on with the next line of its script.
func members(all []process, root int, own func(process) bool) []process {
	children := make(map[int][]process)
	for _, p := range all {
		children[p.ppid] = append(children[p.ppid], p)
	}
	seen := map[int]bool{root: true}
	var found []process
	var add func(p process)
	add = func(p process) {
		if seen[p.pid] {
			return
		}
		seen[p.pid] = true
		if !p.ended() {
			found = append(found, p)
		}
		for _, child := range children[p.pid] {
			add(child)
		}
	}
	for _, child := range children[root] {
		add(child)
	}
	for _, p := range all {
		if !seen[p.pid] && !p.ended() && own(p) {
			add(p)
		}
	}
	slices.SortFunc(found, func(p, q process) int {
		return cmp.Or(cmp.Compare(p.ticks, q.ticks), cmp.Compare(p.pid, q.pid))
	})
	return found
}

// crew lists what runs below a living supervisor. It has adopted whatever forked away, so its descendants
// are all there is; the mark is a second net.
func crew(supervisor int, mark string) ([]process, error) {
	all, err := processes()
	if err != nil {
		return nil, err
	}
	return members(all, supervisor, func(p process) bool { return carries(p.pid, mark) }), nil
}

// remains lists what still runs of an attempt whose supervisor is dead. run is nil if it was never recorded.
func (l launchRecord) remains(run *runRecord) ([]process, error) {
	if l.Boot != bootID() {
		return nil, nil
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	reused := false
	if run != nil {
		for _, p := range all {
			reused = reused || p.pid == run.PID && p.ticks != run.Ticks
		}
	}
	return members(all, nobody, func(p process) bool {
		if run != nil && !reused && (p.pid == run.PID || p.session == run.PID && p.ticks >= run.Ticks) {
			return true
		}
		return carries(p.pid, l.Mark)
	}), nil
}

// nothingRemains reports whether nothing of an attempt runs any more, its supervisor being dead. It looks twice:
// a process that forks and ends while /proc is read can be missed once.
func (l launchRecord) nothingRemains(run *runRecord) (bool, error) {
	for range 2 {
		left, err := l.remains(run)
		if err != nil || len(left) > 0 {
			return false, err
		}
	}
	return true, nil
}

// signal sends a signal to exactly this process. It may have ended; a later one with its number gets nothing.
func (p process) signal(sig syscall.Signal) {
	handle, err := os.FindProcess(p.pid) // holds on to the process, where the kernel can (Linux 5.3)
	if err != nil {
		return
	}
	defer func() { _ = handle.Release() }()
	if now, ok := readProcess(p.pid); ok && now.id() == p.id() {
		_ = handle.Signal(sig) // it has ended: what was wanted
	}
}
