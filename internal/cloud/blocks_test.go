package cloud

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// blocks is a stored view, as a store keeps it.
type blocks struct {
	marks    map[int64]string
	machines map[int64][]byte
}

func newBlocks() *blocks { return &blocks{map[int64]string{}, map[int64][]byte{}} }

// put keeps changes, all of which fit what is there.
func (b *blocks) put(t *testing.T, changes []BlockChange) {
	t.Helper()
	for _, c := range changes {
		if b.marks[c.Number] != c.Was {
			t.Fatalf("block %d had other marks", c.Number)
		}
		if b.marks[c.Number], b.machines[c.Number] = c.Marks, c.Machines; c.Marks == "" {
			delete(b.marks, c.Number)
			delete(b.machines, c.Number)
		}
	}
}

// take compares a list with what is stored, in pages, and stores it.
func (b *blocks) take(t *testing.T, list []Node, all bool) (changes []BlockChange, before, came []Node) {
	t.Helper()
	c := Compare(b.marks, all)
	for page := range slices.Chunk(list, 7) {
		c.Add(page)
	}
	read := map[int64][]byte{}
	for _, number := range c.Changed() {
		read[number] = b.machines[number]
	}
	changes, before, came, err := c.Merge(read)
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, changes)
	return changes, before, came
}

func (b *blocks) listed(t *testing.T) []Node {
	t.Helper()
	nodes, err := Listed(nil, slices.Collect(maps.Values(b.machines))...)
	if err != nil {
		t.Fatal(err)
	}
	return byID(nodes)
}

func byID(nodes []Node) []Node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return strings.Compare(a.ID, b.ID) })
}

func machineOf(id job.ID, name string) Node {
	return Node{
		Identity: Identity{Deployment: "d", Job: id, Nonce: "n", Task: 1, Attempt: 1}, ID: name, Provider: "far", Region: "r",
		State: Running, Price: .25, CreatedAt: time.Unix(1_700_000_000, 5).UTC(),
	}
}

// TestBlocks ensures that, whatever comes, changes and goes between lists, what is stored is the last list, that what is told of
// before and after is all that has changed, and that only blocks with changes are written.
func TestBlocks(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	b := newBlocks()
	list := map[string]Node{}
	for round := range 200 {
		before := maps.Clone(list)
		touched := map[int64]bool{}
		for range dice.IntN(6) {
			id := job.ID(dice.IntN(2000))
			name := "m" + string(rune('a'+dice.IntN(4))) + "-" + strconv.Itoa(int(id))
			n, there := list[name]
			touched[blockOf(id)] = true
			switch {
			case !there:
				list[name] = machineOf(id, name)
			case dice.IntN(2) == 0:
				delete(list, name)
			default:
				n.State, n.Reason = Preempted, n.Reason+"\xff" // not even text
				list[name] = n
			}
		}
		all := slices.Collect(maps.Values(list))
		changes, was, came := b.take(t, append(all, all[:len(all)/2]...), round%50 == 49)
		want := byID(asJSON(t, all))
		if diff := cmp.Diff(want, b.listed(t)); diff != "" {
			t.Fatalf("round %d: stored (-want +got):\n%s", round, diff)
		}
		if round%50 == 49 {
			continue // nothing counted as unchanged
		}
		for _, c := range changes {
			if !touched[c.Number] {
				t.Errorf("round %d: block %d was written, where nothing has changed", round, c.Number)
			}
		}
		for name, n := range before {
			if now, there := list[name]; there && reflect.DeepEqual(now, n) {
				continue
			}
			if !slices.ContainsFunc(was, func(o Node) bool { return o.ID == name }) {
				t.Errorf("round %d: %s has changed and is not told of", round, name)
			}
		}
		for name, n := range list {
			told := slices.ContainsFunc(came, func(o Node) bool { return o.ID == name })
			if changed := !reflect.DeepEqual(before[name], n); changed != told {
				t.Errorf("round %d: %s is changed: %t, and told to be: %t", round, name, changed, told)
			}
		}
	}
}

// asJSON are machines as they are when they were stored and read.
func asJSON(t *testing.T, nodes []Node) []Node {
	t.Helper()
	text, err := json.Marshal(nodes)
	if err != nil {
		t.Fatal(err)
	}
	out := []Node{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMarksOfMachines ensures that a change of any field of a machine changes its mark, also of one that is added to it later.
func TestMarksOfMachines(t *testing.T) {
	t.Parallel()
	var m marker
	seen := map[uint64]string{m.of(&Node{}): "none"}
	var change func(n *Node, v reflect.Value, name string)
	change = func(n *Node, v reflect.Value, name string) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Float64:
			v.SetFloat(.5)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Struct:
			if at, ok := v.Addr().Interface().(*time.Time); ok {
				*at = time.Unix(3, 4)
				break
			}
			for i := range v.NumField() {
				change(n, v.Field(i), name+"."+v.Type().Field(i).Name)
			}
			return
		default:
			t.Fatalf("%s is a %s: the mark has to know it", name, v.Kind())
		}
		mark := m.of(n)
		if other, ok := seen[mark]; ok {
			t.Errorf("a change of %s leaves the mark as with %s", name, other)
		}
		seen[mark] = name
		v.Set(before)
	}
	var n Node
	change(&n, reflect.ValueOf(&n).Elem(), "Node")
}

// TestMarksStay ensures that marks are the same in every version: workers of two versions that run side by side would else write
// all blocks again and again.
func TestMarksStay(t *testing.T) {
	t.Parallel()
	n := machineOf(300, "m1")
	if got := (&marker{}).of(&n); got != 0xef64efc3af7c4d8b {
		t.Errorf("the mark is %#x", got)
	}
}

// TestDamagedBlocks ensures that a block that is not what its marks say is taken out, and filled again by the next list.
func TestDamagedBlocks(t *testing.T) {
	t.Parallel()
	list := []Node{machineOf(1, "m1"), machineOf(2, "m2"), machineOf(300, "m3")}
	for what, damage := range map[string]func(b *blocks){
		"its machines are gone":    func(b *blocks) { delete(b.machines, 0) },
		"its machines are no text": func(b *blocks) { b.machines[0] = []byte("x") },
		"its marks are gone":       func(b *blocks) { delete(b.marks, 0) },
		"its marks are cut":        func(b *blocks) { b.marks[0] = b.marks[0][:markSize+1] },
		"it has other machines":    func(b *blocks) { b.machines[0] = b.machines[2] },
		"it is of another region":  func(b *blocks) { b.marks[0], b.machines[0] = b.marks[2], b.machines[2] },
		"nothing is left of marks": func(b *blocks) { b.marks[0] = "x" },
		"another block has twice":  func(b *blocks) { b.marks[5], b.machines[5] = b.marks[2], b.machines[2] },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBlocks()
			b.take(t, list, false)
			damage(b)
			changed := slices.Clone(list) // a block is read when something in it changes
			changed[0].State = Terminated
			for range 2 {
				b.take(t, changed, false)
			}
			if diff := cmp.Diff(changed, b.listed(t)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}
