package linear_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/outlast-dev/outlast/chaos/linear"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

var (
	lasts = flag.Duration("linear.for", 3*time.Second, "how long the record is attacked")
	seed  = flag.Uint64("linear.seed", 0, "seed of that; 0 takes a new one")
)

const (
	clients = 5
	window  = 3 // jobs that are driven at a time: few, so that clients meet
	spell   = 400 * time.Millisecond
	patient = 10 * time.Second // for porcupine; it takes milliseconds
)

// Ensure that whatever clients do to the records of a few jobs at the same time, while their connections are cut, slowed and
// torn and Redis is killed, there is one order of all that agrees with what each was told.
func TestG2_RecordIsLinearizable(t *testing.T) {
	if bug := os.Getenv("OUTLAST_PLANT"); bug != "" {
		t.Skipf("with the bug %s planted it is not: see TestG2_PlantedBugIsFound", bug)
	}
	result, info, ops := attack(t)
	if result == porcupine.Ok {
		return
	}
	picture := filepath.Join(os.TempDir(), "linear-"+strconv.Itoa(os.Getpid())+".html")
	if err := porcupine.VisualizePath(linear.Model, info, picture); err != nil {
		t.Log(err)
	}
	if result == porcupine.Unknown {
		t.Logf("porcupine has not come to an end within %s over %d calls: nothing is shown; %s", patient, len(ops), picture)
		return
	}
	t.Errorf("no order of %d calls agrees with what the clients were told: see %s", len(ops), picture)
}

// attack lets clients at the records for a while, and judges what they were told.
func attack(t *testing.T) (porcupine.CheckResult, porcupine.LinearizationInfo, []porcupine.Operation) {
	t.Helper()
	from := *seed
	if from == 0 {
		from = rand.Uint64()
	}
	t.Logf("-linear.seed %d", from)
	dice := rand.New(rand.NewPCG(from, 1))
	n := newNetwork(t, clients)
	windows := max(int(*lasts/spell), 1)
	ctx, done := context.WithTimeout(t.Context(), time.Duration(windows)*spell)
	defer done()

	s, err := store.Found(t.Context(), n.admin, store.Deployment{ID: "linear", Shards: windows * window})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Submit(t.Context(), store.Submission{Request: job.Request{Name: "linear", Tasks: []job.TaskRequest{{Run: "true"}}}, Count: windows * window})
	if err != nil {
		t.Fatal(err)
	}
	book := &book{began: time.Now()}
	var all sync.WaitGroup
	for i := range clients {
		s, err := store.Open(t.Context(), n.client(i))
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, id: i, book: book, dice: rand.New(rand.NewPCG(from, uint64(i+2)))}
		c.store = s.Raising(func() int64 { return c.raise })
		all.Go(func() {
			for ctx.Err() == nil {
				w := min(int(time.Since(book.began)/spell), windows-1)
				c.drive(ctx, ids[w*window+c.dice.IntN(window)])
			}
		})
	}
	for i := range clients {
		dice := rand.New(rand.NewPCG(from, uint64(1000+i)))
		all.Go(func() {
			for ctx.Err() == nil {
				pause(ctx, time.Duration(dice.IntN(300))*time.Millisecond)
				n.harm(ctx, i, toxics[dice.IntN(len(toxics))], time.Duration(20+dice.IntN(200))*time.Millisecond)
			}
		})
	}
	for ctx.Err() == nil { // here, since only the test itself may start a server
		pause(ctx, time.Duration(200+dice.IntN(1500))*time.Millisecond)
		n.kill()
	}
	all.Wait()
	result, info := porcupine.CheckOperationsVerbose(linear.Model, book.ops, patient)
	t.Logf("%d calls of %d clients, %d without an answer: %s", len(book.ops), clients, book.lost, result)
	return result, info, book.ops
}
