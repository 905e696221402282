package sim_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// TestFindIsAPartOfList ensures that the machines of some jobs are found as a list shows them, ended ones too.
func TestFindIsAPartOfList(t *testing.T) {
	t.Parallel()
	w := open(t, small())
	p := w.Provider(deployment, "test")
	for id := range job.ID(5) {
		r := cloud.Request{
			Identity: cloud.Identity{Deployment: deployment, Job: id + 1, Attempt: 1}, Token: "t" + string(rune('a'+id)),
			Offer: offer("east", "east-a"), Nodes: 2,
		}
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Terminate(t.Context(), "east", cloud.Match{Deployment: deployment, Job: 2}); err != nil {
		t.Fatal(err)
	}
	wanted := []job.ID{1, 2, 99}
	for range 2 { // before and after they have booted
		all, err := p.List(t.Context(), "east")
		if err != nil {
			t.Fatal(err)
		}
		some, err := p.Find(t.Context(), "east", wanted)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(all, func(n cloud.Node) bool { return !slices.Contains(wanted, n.Job) })
		for _, nodes := range [][]cloud.Node{want, some} {
			slices.SortFunc(nodes, func(a, b cloud.Node) int { return int(a.Job-b.Job)*2 + a.Rank - b.Rank })
			for i := range nodes {
				if !nodes[i].State.Ended() {
					nodes[i].State, nodes[i].Address = "", "" // it may have booted in between
				}
			}
		}
		if diff := cmp.Diff(want, some); diff != "" || len(some) != 4 {
			t.Errorf("found (-listed +found):\n%s", diff)
		}
	}
	if none, err := p.Find(t.Context(), "east", nil); err != nil || len(none) > 0 {
		t.Errorf("of no jobs: %v, %v", none, err)
	}
}
