package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// write writes a world file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "world.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Ensure that a world file is read as it is meant.
func TestLoadWorld(t *testing.T) {
	path := write(t, `
name: chaos
seed: 7
settle: 1s
view_every: 15s
ledger: false
zones:
- {name: east-a, region: east, boot: 200ms, notice: 2s, capacity: 20, types: [{name: s1, cpus: 4, memory: 16, price: 1, spot_price: 0.3, accelerators: {H100: 8}}]}
- {name: b, capacity: {steps: [{at: 0s, n: 20}, {at: 30s, n: 0}], repeat: 60s}, types: [{name: s1, price: 1}]}
- {name: c, capacity: {markov: {up: 20, to_down: 0.1, to_up: 0.3, every: 10s}}, types: [{name: s1, price: 1}]}
- {name: d, capacity: {trace: t.json, scale: 2}, types: [{name: s1, price: 1}]}
faults:
- {op: create, kind: late, zone: east-a, p: 0.5, count: 3, for: 1m, delay: 500ms}
`)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "t.json"), []byte(`{"metadata": {"gap_seconds": 60}, "data": [4, 0]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := LoadWorld(path)
	if err != nil {
		t.Fatal(err)
	}
	plain := []Type{{Name: "s1", Price: 1}}
	want := World{
		Name: "chaos", Seed: 7, Settle: time.Second, ViewEvery: 15 * time.Second, NoLedger: true,
		Zones: []Zone{
			{Name: "east-a", Region: "east", Boot: 200 * time.Millisecond, Notice: 2 * time.Second, Capacity: Capacity{N: 20},
				Types: []Type{{Name: "s1", CPUs: 4, Memory: 16, Price: 1, SpotPrice: 0.3, Accelerators: map[string]int{"H100": 8}}}},
			{Name: "b", Capacity: Capacity{Steps: []Step{{0, 20}, {30 * time.Second, 0}}, Repeat: time.Minute}, Types: plain},
			{Name: "c", Capacity: Capacity{Markov: &Markov{Up: 20, ToDown: 0.1, ToUp: 0.3, Every: 10 * time.Second}}, Types: plain},
			{Name: "d", Capacity: Capacity{Trace: &Trace{Gap: time.Minute, Machines: []int{8, 0}}}, Types: plain},
		},
		Faults: []Fault{{Op: OpCreate, Kind: LateKind, Zone: "east-a", P: 0.5, Count: 3, For: time.Minute, Delay: 500 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Capacity{})); diff != "" {
		t.Errorf("world (-want +got):\n%s", diff)
	}
}

// Ensure that what is wrong with a world file is said with its line.
func TestLoadWorldRefuses(t *testing.T) {
	const zone = "\nname: w\nzones:\n- name: a\n  types:\n  - {name: s1, price: 1}\n  capacity: "
	for _, tc := range []struct{ name, text, want string }{
		{"no YAML", "name: [", "world.yaml:1: "},
		{"unknown field", "name: w\nzone: []", `world.yaml:2: unknown field "zone"`},
		{"no name", "seed: 1", "name: must be"},
		{"bad name", "name: W", "world.yaml:1: name: must be"},
		{"no zones", "name: w", "zones: must name at least one zone"},
		{"bad zone", "name: w\nzones:\n- {name: '..'}", "world.yaml:3: zones[0].name: must be"},
		{"zone twice", "name: w\nzones:\n- {name: a, types: [{name: s, price: 1}]}\n- {name: a}", "world.yaml:4: zones[1].name: a is there twice"},
		{"no types", "name: w\nzones:\n- {name: a}", "world.yaml:3: zones[0]: must have at least one type"},
		{"free machines", "name: w\nzones:\n- name: a\n  types: [{name: s}]", "world.yaml:4: zones[0].types[0]: must have a price"},
		{"negative boot", "name: w\nzones:\n- {name: a, boot: -1s}", "world.yaml:3: zones[0]: boot and notice"},
		{"negative", zone + "-1", "world.yaml:7: zones[0].capacity: must not be negative"},
		{"text", zone + "many", "must be a number of machines, or a mapping"},
		{"unknown form", zone + "{stepz: []}", `must be a number of machines, or a mapping with steps, markov or trace`},
		{"two forms", zone + "{steps: [{at: 0s, n: 1}], markov: {every: 1s}}", "must be one of steps, markov and trace"},
		{"steps back", zone + "{steps: [{at: 2s, n: 1}, {at: 1s, n: 2}]}", "each step must come after"},
		{"steps beyond", zone + "{steps: [{at: 2s, n: 1}], repeat: 1s}", "each step must come before"},
		{"markov without a time", zone + "{markov: {up: 1}}", "markov must have an every"},
		{"no probability", zone + "{markov: {up: 1, every: 1s, to_up: 2}}", "markov must have"},
		{"no trace", zone + "{trace: none.json}", "world.yaml:7: zones[0].capacity: read the trace"},
		{"unknown op", zone + "1\nfaults:\n- {op: boil}", `world.yaml:9: faults[0]: there is no op "boil"`},
		{"unknown kind", zone + "1\nfaults:\n- {op: list, kind: half}", `"half" does not befall list`},
		{"too late", zone + "1\nsettle: 1s\nfaults:\n- {op: list, kind: lag, delay: 2s}", "more than lists may lag"},
		{"unknown zone", zone + "1\nfaults:\n- {op: list, kind: short, zone: b}", `there is no zone "b"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := LoadWorld(write(t, tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %v", err)
			}
		})
	}
}

// Ensure that the world of the examples is one.
func TestExampleWorld(t *testing.T) {
	w, err := LoadWorld("../../../examples/sim/world.yaml")
	if err != nil || len(w.Zones) < 4 || w.NoLedger {
		t.Errorf("world %+v, error %v", w, err)
	}
}
