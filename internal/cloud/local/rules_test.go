package local

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
)

// Which files there are and whether init lives decide the state of a machine.
func TestJudge(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	young, old := now.Add(-time.Second), now.Add(-time.Hour)
	ahead := &agent.Notice{At: now.UnixMilli(), Deadline: now.Add(time.Minute).UnixMilli()}
	past := &agent.Notice{At: now.Add(-time.Minute).UnixMilli(), Deadline: now.Add(-30 * time.Second).UnixMilli()}
	killed := &end{State: cloud.Terminated, Reason: "on request"}
	for _, c := range []struct {
		name  string
		facts facts
		state cloud.State
		end   cloud.State // to be recorded
		sweep bool
	}{
		{"just made", facts{created: young, init: initAbsent}, cloud.Booting, "", false},
		{"never started", facts{created: old, init: initAbsent}, cloud.Stopping, cloud.Terminated, true},
		{"booting for long", facts{created: old, init: initAlive}, cloud.Booting, "", false},
		{"running", facts{created: old, init: initAlive, booted: true}, cloud.Running, "", false},
		{"with notice", facts{created: old, init: initAlive, booted: true, notice: ahead}, cloud.Stopping, "", false},
		{"with notice while booting", facts{created: young, init: initAlive, notice: ahead}, cloud.Stopping, "", false},
		{"notice is over", facts{created: old, init: initAlive, booted: true, notice: past}, cloud.Stopping, cloud.Preempted, true},
		{"init was killed", facts{created: old, init: initDead, booted: true}, cloud.Stopping, cloud.Preempted, true},
		{"init was killed while booting", facts{created: young, init: initDead}, cloud.Stopping, cloud.Preempted, true},
		{"computer was restarted", facts{created: old, init: initRebooted, booted: true}, cloud.Stopping, cloud.Preempted, true},
		{"end began", facts{created: old, init: initAlive, booted: true, end: killed}, cloud.Stopping, "", true},
		{"end began, init is dead", facts{created: old, init: initDead, end: killed}, cloud.Stopping, "", true},
		{"ended", facts{created: old, end: killed, gone: true}, cloud.Terminated, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.now = now
			got := judge(c.facts)
			if got.state != c.state || got.sweep != c.sweep {
				t.Errorf("state %s, sweep %v; want %s, %v", got.state, got.sweep, c.state, c.sweep)
			}
			var recorded cloud.State
			if got.end != nil {
				recorded = got.end.State
			}
			if recorded != c.end {
				t.Errorf("end %q is to be recorded, want %q", recorded, c.end)
			}
		})
	}
}

// A machine is said to have ended only if somebody has seen that nothing of it is left, its first end is never
// overruled, and one that is useful has a living init and no end.
func TestJudgeNeedsProof(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		f := facts{
			now: now, created: now.Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "age")) * time.Second),
			init:   rapid.SampledFrom([]initState{initAbsent, initAlive, initDead, initRebooted}).Draw(t, "init"),
			booted: rapid.Bool().Draw(t, "booted"), gone: rapid.Bool().Draw(t, "gone"),
		}
		if rapid.Bool().Draw(t, "end") {
			f.end = &end{State: rapid.SampledFrom([]cloud.State{cloud.Preempted, cloud.Terminated}).Draw(t, "as"), Reason: "r"}
		}
		if rapid.Bool().Draw(t, "notice") {
			at := now.UnixMilli()
			f.notice = &agent.Notice{At: at, Deadline: at + int64(rapid.IntRange(-10_000, 10_000).Draw(t, "left"))}
		}
		v := judge(f)
		switch {
		case v.state.Ended() && (f.end == nil || !f.gone):
			t.Fatalf("%+v is %s without proof", f, v.state)
		case f.end != nil && v.end != nil:
			t.Fatalf("%+v: its end is overruled with %+v", f, v.end)
		case v.state == cloud.Running && (f.init != initAlive || f.end != nil || f.notice != nil || !f.booted):
			t.Fatalf("%+v is running", f)
		case (v.state == cloud.Stopping || v.state.Ended()) && v.reason == "":
			t.Fatalf("%+v is %s for no reason", f, v.state)
		case v.end != nil && !v.sweep:
			t.Fatalf("%+v ends, and nobody looks what is left", f)
		}
	})
}

// The processes of a machine are closed under having children; init, the caller and the dead are not among them,
// and nobody else is.
func TestBelonging(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		all := []process{{pid: 1, state: 'S'}}
		for pid := 2; pid <= n; pid++ {
			all = append(all, process{
				pid: pid, ppid: rapid.IntRange(1, pid-1).Draw(t, "parent"), state: rapid.SampledFrom([]byte("SRZ")).Draw(t, "state"),
			})
		}
		slices.Reverse(all) // the order of the table means nothing
		root, spare := rapid.IntRange(0, n).Draw(t, "root"), rapid.IntRange(0, n).Draw(t, "spare")
		tagged := rapid.SliceOfN(rapid.IntRange(2, n+1), 0, 3).Draw(t, "tagged")
		got := map[int]bool{}
		for _, p := range belonging(all, root, spare, func(p process) bool { return slices.Contains(tagged, p.pid) }) {
			if got[p.pid] {
				t.Fatalf("%d is there twice", p.pid)
			}
			got[p.pid] = true
		}
		for _, p := range all {
			want := !p.ended() && p.pid != spare && p.pid != root && ours(all, p, root, tagged)
			if got[p.pid] != want {
				t.Fatalf("process %d: %v, want %v (root %d, spare %d, tagged %v)\n%+v", p.pid, got[p.pid], want, root, spare, tagged, all)
			}
		}
	})
}

// ours says what belonging means: p or one of its ancestors is a living tagged process, or an ancestor is root.
func ours(all []process, p process, root int, tagged []int) bool {
	for first := true; ; first = false {
		if slices.Contains(tagged, p.pid) && !p.ended() || (!first && root > 0 && p.pid == root) {
			return true
		}
		i := slices.IndexFunc(all, func(q process) bool { return q.pid == p.ppid })
		if i < 0 {
			return false
		}
		p = all[i]
	}
}

// A process names itself as it likes; what the kernel says of it is read all the same.
func TestParseStat(t *testing.T) {
	const tail = " 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 100 200 18446744073709551615"
	want := process{pid: 42, ppid: 7, ticks: 4711, state: 'S'}
	for _, name := range []string{"sleep", "a b", ") Z 1 (", "((", "new\nline", ""} {
		got, err := parseStat(42, "42 ("+name+") S"+tail)
		if err != nil {
			t.Errorf("name %q: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); diff != "" {
			t.Errorf("name %q (-want +got):\n%s", name, diff)
		}
	}
	for _, bad := range []string{"", "42", "42 (x", "42 (x) S 1", "42 (x) S x" + tail[2:]} {
		if p, err := parseStat(42, bad); err == nil {
			t.Errorf("%q is %+v", bad, p)
		}
	}
}

// A signal for a process that has ended, and whose id another one has now, does not reach that one.
func TestSignalKnowsItsProcess(t *testing.T) {
	me, err := lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	me.ticks++ // an earlier process with this id
	if err := me.signal(9); err != nil {
		t.Errorf("signal: %v", err)
	}
}

// The first word about an end counts, and the files are whole.
func TestWriteOnce(t *testing.T) {
	dir := t.TempDir()
	for _, reason := range []string{"first", "second"} {
		if err := writeOnce(dir, fileEnd, end{Reason: reason}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readOptional[end](dir, fileEnd)
	if err != nil || got == nil || got.Reason != "first" {
		t.Errorf("end %+v, error %v", got, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("the directory holds %v", left)
	}
	if err := writeOnce(dir+"/none", fileEnd, end{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// Offers have one order, spot costs about a third, and the defaults are the four zones.
func TestDefaultZones(t *testing.T) {
	zones, err := zonesOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for i, z := range zones {
		if want := string(rune('a' + i)); z.Name != want || z.Capacity != 16 || z.Boot != 50*time.Millisecond {
			t.Errorf("zone %d is %+v", i, z)
		}
		if z.Price <= last || z.SpotPrice <= 0 || z.SpotPrice > z.Price*0.34 || z.SpotPrice < z.Price*0.32 {
			t.Errorf("zone %s costs %g, spot %g", z.Name, z.Price, z.SpotPrice)
		}
		last = z.Price
	}
	for _, z := range zones {
		if offers := z.offers(); len(offers) != 2 || offers[0].Type != "local" || offers[0].Spot || !offers[1].Spot {
			t.Errorf("zone %s offers %+v, want one machine in two markets", z.Name, offers)
		}
	}
}

// A zone with accelerators offers machines without any, and with each number that job files ask for, in both markets.
func TestZoneWithAccelerators(t *testing.T) {
	zones, err := zonesOf([]Zone{{Name: "a", Price: 0.5, SpotPrice: 0.2, Accelerators: map[string]int{"T4": 1, "A100": 6}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range zones[0].offers() {
		got = append(got, fmt.Sprintf("%s %s:%g %g", o.Key(), o.Accelerator, o.AcceleratorCount, o.Price))
	}
	want := []string{
		"local/a/a/local/od :0 0.5", "local/a/a/local/spot :0 0.2",
		"local/a/a/a100-x1/od A100:1 1.5", "local/a/a/a100-x1/spot A100:1 0.5333",
		"local/a/a/a100-x2/od A100:2 2.5", "local/a/a/a100-x2/spot A100:2 0.8667",
		"local/a/a/a100-x4/od A100:4 4.5", "local/a/a/a100-x4/spot A100:4 1.5333",
		"local/a/a/a100-x6/od A100:6 6.5", "local/a/a/a100-x6/spot A100:6 2.2",
		"local/a/a/t4-x1/od T4:1 1.5", "local/a/a/t4-x1/spot T4:1 0.5333",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offers (-want +got):\n%s", diff)
	}
}

// A configuration that can not work is refused at once, with what is wrong.
func TestNewRefusesNonsense(t *testing.T) {
	good := Config{Root: t.TempDir(), Deployment: "d", Machine: []string{"x"}}
	if _, err := New(good); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for name, spoil := range map[string]func(*Config){
		"no root":             func(c *Config) { c.Root = "" },
		"no deployment":       func(c *Config) { c.Deployment = "" },
		"deployment with NUL": func(c *Config) { c.Deployment = "a\x00b" },
		"deployment with ESC": func(c *Config) { c.Deployment = "a\x1b[2J" },
		"no machine":          func(c *Config) { c.Machine = nil },
		"zone is a path":      func(c *Config) { c.Zones = []Zone{{Name: "../x"}} },
		"zone without a name": func(c *Config) { c.Zones = []Zone{{}} },
		"zone twice":          func(c *Config) { c.Zones = []Zone{{Name: "a"}, {Name: "a"}} },
		"no accelerators":     func(c *Config) { c.Zones = []Zone{{Name: "a", Accelerators: map[string]int{"A100": 0}}} },
		"bad accelerator":     func(c *Config) { c.Zones = []Zone{{Name: "a", Accelerators: map[string]int{"A/100": 1}}} },
		"accelerator twice":   func(c *Config) { c.Zones = []Zone{{Name: "a", Accelerators: map[string]int{"A100": 1, "a100": 2}}} },
		"negative price":      func(c *Config) { c.Zones = []Zone{{Name: "a", Price: -1}} },
		"root is a file":      func(c *Config) { c.Root = "/proc/self/status" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			spoil(&c)
			if _, err := New(c); err == nil {
				t.Error("it is accepted")
			}
		})
	}
}
