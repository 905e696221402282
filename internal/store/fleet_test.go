package store

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestViews ensures that of two looks at a region the later one is kept, in whichever order they come in.
func TestViews(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		if _, err := b.View(b.ctx, "aws", "eu-central-1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a region nobody looked at gave %v", err)
		}
		view := func(region string, at job.Time, fault string) View {
			return View{Provider: "aws", Region: region, At: at, Machines: json.RawMessage(`[]`), Error: fault}
		}
		for _, v := range []View{view("eu-central-1", 2000, ""), view("eu-central-1", 1000, "late"), view("eu-central-1", 2000, "down"), view("af-south-1", 5, "")} {
			b.must(t, b.PutView(b.ctx, v))
		}
		want := []View{view("af-south-1", 5, ""), view("eu-central-1", 2000, "down")}
		if diff := cmp.Diff(want, must[[]View](t)(b.Views(b.ctx))); diff != "" {
			t.Errorf("views (-want +got):\n%s", diff)
		}
		if got := must[View](t)(b.View(b.ctx, "aws", "eu-central-1")); got.Error != "down" {
			t.Errorf("view %+v", got)
		}
	})
}

// TestWorkers ensures that workers are listed while they report themselves, and forgotten after.
func TestWorkers(t *testing.T) {
	b := newBench(t, 2)
	for _, name := range []string{"b", "a", "gone"} {
		b.must(t, b.PutWorker(b.ctx, Worker{Name: name, Ready: true}))
	}
	b.must(t, b.DropWorker(b.ctx, "gone"))
	silent := Worker{Name: "silent", SeenAt: must[job.Time](t)(b.Now(b.ctx)).Add(-workerLife - time.Second)}
	b.must(t, b.rdb.HSet(b.ctx, deploymentPrefix+"workers", "silent", mustJSON(silent), "damaged", "{").Err())
	var names []string
	for _, w := range must[[]Worker](t)(b.Workers(b.ctx)) {
		names = append(names, w.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("workers (-want +got):\n%s", diff)
	}
	if n := must[int64](t)(b.rdb.HLen(b.ctx, deploymentPrefix+"workers").Result()); n != 2 {
		t.Errorf("%d workers are remembered", n)
	}
}

// TestFoundAtOnce ensures that workers that start at the same time agree on one deployment.
func TestFoundAtOnce(t *testing.T) {
	b := newBench(t, 7)
	b.must(t, b.rdb.FlushAll(b.ctx).Err())
	got := make([]*Store, 8)
	errs := make([]error, len(got))
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i], errs[i] = Found(b.ctx, b.rdb, Deployment{Shards: 1 + i}) })
	}
	all.Wait()
	for i := range got {
		b.must(t, errs[i])
		if diff := cmp.Diff(got[0].Deployment(), got[i].Deployment()); diff != "" || got[i].Deployment().ID == "" {
			t.Errorf("workers 0 and %d disagree:\n%s", i, diff)
		}
	}
}

// TestFoundFills ensures that a later worker adds what the first one did not know, and changes nothing it did.
func TestFoundFills(t *testing.T) {
	b := newBench(t, 4)
	s := must[*Store](t)(Found(b.ctx, b.rdb, Deployment{ID: "other", Shards: 8, Archive: "s3://bucket", Recipient: "age1"}))
	want := Deployment{ID: "test", Schema: Schema, Shards: 4, Archive: "s3://bucket", Recipient: "age1"}
	if diff := cmp.Diff(want, s.Deployment()); diff != "" {
		t.Errorf("deployment (-want +got):\n%s", diff)
	}
	for _, shards := range []int{0, -1, 101} {
		if _, err := Found(b.ctx, b.rdb, Deployment{Shards: shards}); err == nil {
			t.Errorf("%d shards are allowed", shards)
		}
	}
}

// TestRotate ensures that the public key is changed only by somebody who knew the one in use.
func TestRotate(t *testing.T) {
	onBoth(t, 4, func(t *testing.T, b *bench) {
		for _, step := range []struct {
			old, next string
			done      bool
			want      string
		}{
			{"", "age1a", true, "age1a"}, {"age1x", "age1b", false, "age1a"}, {"", "age1b", false, "age1a"},
			{"age1a", "age1b", true, "age1b"}, {"age1a", "age1b", true, "age1b"}, {"age1a", "age1c", false, "age1b"},
		} {
			if done := must[bool](t)(b.Rotate(b.ctx, step.old, step.next)); done != step.done {
				t.Errorf("from %q to %q: %v, want %v", step.old, step.next, done, step.done)
			}
			if got := must[string](t)(b.Recipient(b.ctx)); got != step.want {
				t.Errorf("from %q to %q: the key in use is %q, want %q", step.old, step.next, got, step.want)
			}
		}
	})
}

// TestSchema ensures that a store of another version is refused with what to do about it, and left as it is.
func TestSchema(t *testing.T) {
	b := newBench(t, 4)
	key := deploymentPrefix + "deployment"
	for have, advice := range map[string]string{strconv.Itoa(Schema + 1): "newer version", "1": "older version", "0": "older version", "x": "older version"} {
		b.must(t, b.rdb.HSet(b.ctx, key, "schema", have).Err())
		b.unchanged(t, "a refused program", func() {
			_, opened := Open(b.ctx, b.rdb)
			_, founded := Found(b.ctx, b.rdb, Deployment{Shards: 4, Archive: "s3://bucket"})
			for _, err := range []error{opened, founded} {
				var schema *SchemaError
				if !errors.As(err, &schema) || !strings.Contains(err.Error(), advice) {
					t.Errorf("schema %s gave %v", have, err)
				}
			}
		})
	}
	b.must(t, b.rdb.HSet(b.ctx, key, "schema", Schema, "shards", "many").Err())
	if _, err := Open(b.ctx, b.rdb); err == nil {
		t.Error("a damaged number of shards is accepted")
	}
	b.must(t, b.rdb.FlushAll(b.ctx).Err())
	if _, err := Open(b.ctx, b.rdb); !errors.Is(err, ErrNoDeployment) {
		t.Errorf("an empty Redis gave %v", err)
	}
}

// TestViewBlocks ensures that what has changed in a view is kept as one look saw it: not over a later one, not over what another
// look has changed meanwhile, and the time of the view tells of no look of which anything is missing.
func TestViewBlocks(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		at := func(at job.Time) View { return View{Provider: "aws", Region: "r", At: at} }
		stored := func(want map[int64]string, when job.Time) {
			t.Helper()
			got, marks := map[int64]string{}, must[map[int64]string](t)(b.ViewMarks(b.ctx, "aws", "r"))
			for number, block := range must[map[int64][]byte](t)(b.ViewBlocks(b.ctx, "aws", "r")) {
				got[number] = marks[number] + "=" + string(block)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(marks) != len(want) {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if v := must[View](t)(b.View(b.ctx, "aws", "r")); v.At != when || v.Machines != nil {
				t.Errorf("view %+v, want one of %d", v, when)
			}
		}
		var many []ViewBlock
		want := map[int64]string{}
		for number := range int64(3*viewBlocksAtOnce + 1) {
			text := strconv.FormatInt(number, 10)
			many = append(many, ViewBlock{Number: number, Marks: "m" + text, Machines: []byte(text)})
			want[number] = "m" + text + "=" + text
		}
		b.must(t, b.PutView(b.ctx, at(10), many...))
		stored(want, 10)
		b.must(t, b.PutView(b.ctx, at(10), many...)) // as after a reply that was lost
		stored(want, 10)
		b.must(t, b.PutView(b.ctx, at(9), ViewBlock{Number: 1, Was: "m1", Marks: "x", Machines: []byte("x")})) // a later one is there
		stored(want, 10)
		for number := range int64(2*viewBlocksAtOnce + 1) {
			many[number].Was, many[number].Marks = many[number].Marks, ""
			delete(want, number)
		}
		many[0].Was = "of another look"
		want[0] = "m0=0"
		if err := b.PutView(b.ctx, at(11), many[:2*viewBlocksAtOnce+1]...); !errors.Is(err, ErrStale) {
			t.Errorf("a block that another look has changed gave %v", err)
		}
		stored(want, 10)
		b.must(t, b.PutView(b.ctx, at(12), ViewBlock{Number: 0, Was: "m0"}))
		delete(want, 0)
		stored(want, 12)
		some := must[map[int64][]byte](t)(b.ViewBlocks(b.ctx, "aws", "r", 3*viewBlocksAtOnce, 0, 999))
		if diff := cmp.Diff(map[int64][]byte{3 * viewBlocksAtOnce: []byte(strconv.Itoa(3 * viewBlocksAtOnce))}, some); diff != "" {
			t.Errorf("some blocks (-want +got):\n%s", diff)
		}
	})
}

// TestViewsOfTwoVersions ensures that a view in one text, as older workers keep it, is read as a whole, empty ones included, and
// that one in blocks is nothing to those who know only the other form: no region without machines.
func TestViewsOfTwoVersions(t *testing.T) {
	b := newBench(t, 2)
	for text, want := range map[string]string{
		`{"provider":"aws","region":"r","at":5,"machines":[{"id":"m"}]}`: `[{"id":"m"}]`,
		`{"provider":"aws","region":"r","at":5,"machines":null}`:         `null`,
	} {
		b.must(t, b.rdb.HSet(b.ctx, deploymentPrefix+"views", "aws/r", text).Err())
		if v := must[View](t)(b.View(b.ctx, "aws", "r")); string(v.Machines) != want || v.At != 5 {
			t.Errorf("%s is read as %+v", text, v)
		}
	}
	b.must(t, b.PutView(b.ctx, View{Provider: "aws", Region: "r", At: 6}))
	var older struct{ Machines []struct{ ID string } }
	if err := json.Unmarshal([]byte(must[string](t)(b.rdb.HGet(b.ctx, deploymentPrefix+"views", "aws/r").Result())), &older); err == nil {
		t.Error("an older version takes a view in blocks for one with no machines")
	}
}
