package agent

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The name of a program may hold anything and does not confuse who reads the line.
func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2420736 200"
	want := process{pid: 12, ppid: 7, group: 8, session: 9, state: 'S', ticks: 4711}
	for _, name := range []string{"sh", "a b", ") Z 1 1 1 (", "((", "", "a\nb"} {
		got, ok := parseStat([]byte("12 (" + name + ")" + rest))
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", name, got, ok)
		}
	}
	for _, line := range []string{
		"", "12", "12 (sh) S 7", "x (sh)" + rest, ")(", "12 (sh)" + strings.Replace(rest, "4711", "x", 1),
	} {
		if p, ok := parseStat([]byte(line)); ok {
			t.Errorf("%q was taken for %+v", line, p)
		}
	}
}

// A process that has ended but was not waited for is not alive, and carries no mark.
func TestZombie(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	cmd.Env = []string{envMark + "=zombie"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	eventually(t, "it is a zombie", func() bool {
		p, ok := readProcess(cmd.Process.Pid)
		return ok && p.state == 'Z'
	})
	p, _ := readProcess(cmd.Process.Pid)
	run := &runRecord{PID: p.pid, Ticks: p.ticks}
	if none, err := (launchRecord{Mark: "zombie", Boot: bootID()}).nothingRemains(run); err != nil || !none {
		t.Errorf("it was taken for alive, error %v", err)
	}
}

// The mark is a whole variable, not a part of one.
func TestCarries(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"A=1", envMark + "=abc", "X" + envMark + "=def"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "it has its environment", func() bool { return carries(cmd.Process.Pid, "abc") })
	for _, mark := range []string{"ab", "abcd", "def", ""} {
		if carries(cmd.Process.Pid, mark) {
			t.Errorf("it carries %q", mark)
		}
	}
}

// Whoever descends from the root or from a process of our own is a member, and nobody else: parents first, no one
// twice, and never the root itself.
func TestMembers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 30).Draw(t, "processes")
		all, own, parent := make([]process, 0, count), map[int]bool{}, map[int]int{}
		for pid := 1; pid <= count; pid++ {
			p := process{pid: pid, ppid: rapid.IntRange(0, pid-1).Draw(t, "parent"), ticks: uint64(pid), state: 'S'}
			if rapid.IntRange(0, 5).Draw(t, "zombie") == 0 {
				p.state = 'Z'
			}
			own[pid] = rapid.IntRange(0, 5).Draw(t, "own") == 0 && !p.ended()
			parent[pid] = p.ppid
			all = append(all, p)
		}
		root := rapid.SampledFrom([]int{nobody, 1, count}).Draw(t, "root")
		shuffled := rapid.Permutation(all).Draw(t, "order")
		got := members(shuffled, root, func(p process) bool { return own[p.pid] })

		var want []process
		for _, p := range all {
			member := own[p.pid]
			for at := p.ppid; at > 0 && !member; at = parent[at] {
				member = at == root || own[at]
			}
			if member && p.pid != root && !p.ended() {
				want = append(want, p)
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); diff != "" {
			t.Fatalf("members (-want +got):\n%s", diff)
		}
	})
}

// A signal for a process does not reach another one that has its number now.
func TestSignalHitsOnlyIt(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := readProcess(cmd.Process.Pid)
	if !ok {
		t.Fatal("it is not there")
	}
	before := p
	before.ticks--
	before.signal(9)
	if now, ok := readProcess(p.pid); !ok || now.ended() {
		t.Error("it was hit")
	}
	p.signal(9)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error %v", err)
	}
}

// The listing of processes has this one in it.
func TestProcesses(t *testing.T) {
	t.Parallel()
	all, err := processes()
	if err != nil || !slices.ContainsFunc(all, func(p process) bool { return p.pid == os.Getpid() }) {
		t.Errorf("%d processes, error %v", len(all), err)
	}
	if len(bootID()) < 10 {
		t.Errorf("boot %q", bootID())
	}
}

// The nodes of an attempt have marks of their own, though they share a computer and a token.
func TestMarkOf(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, d := range []dir{"/a/0", "/a/1", "/a"} {
		for _, token := range []string{"t", "u", "0t"} {
			mark, what := markOf(d, token), fmt.Sprint(d, token)
			if seen[mark] != "" {
				t.Errorf("%s and %s have the same mark", what, seen[mark])
			}
			seen[mark] = what
		}
	}
}
