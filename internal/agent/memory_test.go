package agent

import (
	"os"
	"path/filepath"
	"testing"
)

// The count of kills is found in either version of control groups, or for the whole machine.
func TestKernelKills(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		groups string
		files  map[string]string
		want   uint64
		ok     bool
	}{
		{"version 2", "0::/a/b\n", map[string]string{
			"sys/fs/cgroup/a/b/memory.events": "low 0\noom 9\noom_kill 3\noom_group_kill 0\n", "proc/vmstat": "oom_kill 8\n",
		}, 3, true},
		{"version 1", "4:memory:/x\n0::/\n", map[string]string{
			"sys/fs/cgroup/memory/x/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
		}, 5, true},
		{"version 1 in a container", "4:memory:/docker/id\n", map[string]string{
			"sys/fs/cgroup/memory/memory.oom_control": "oom_kill 6\n",
		}, 6, true},
		{"no group", "0::/\n", map[string]string{"proc/vmstat": "nr_free_pages 7\noom_kill 2\n"}, 2, true},
		{"a path that leads away", "0::/../../../secret\n", map[string]string{
			"secret/memory.events": "oom_kill 4\n",
		}, 0, false},
		{"nothing", "", nil, 0, false},
		{"nonsense", "x\n::\n", map[string]string{"proc/vmstat": "oom_kill x\n"}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			files := map[string]string{"proc/self/cgroup": tt.groups}
			for name, text := range tt.files {
				files[name] = text
			}
			for name, text := range files {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, ok := kernelKills(root)(); got != tt.want || ok != tt.ok {
				t.Errorf("%d, %v; want %d, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

// Only what looks like a KILL, while the kernel has counted one, was killed for memory.
//
// skypilot #9758, #9958: a lack of memory was not told from other failures.
func TestKilledForMemory(t *testing.T) {
	t.Parallel()
	tests := []struct {
		exit          Exit
		before, after uint64
		want          bool
	}{
		{Exit{Code: 137, Signal: "SIGKILL"}, 1, 2, true},
		{Exit{Code: 137}, 1, 2, true}, // a shell passes on what happened to its child
		{Exit{Code: 137, Signal: "SIGKILL"}, 2, 2, false},
		{Exit{Code: 1}, 1, 2, false},
		{Exit{Code: 143, Signal: "SIGTERM"}, 1, 2, false},
	}
	for _, tt := range tests {
		if got := killedForMemory(tt.exit, tt.before, tt.after); got != tt.want {
			t.Errorf("%+v, %d to %d: %v", tt.exit, tt.before, tt.after, got)
		}
	}
}
