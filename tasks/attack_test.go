package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/store"
)

// rented is a provider that does what a test says.
type rented struct {
	cloud.Provider
	name      string
	regions   func(context.Context) ([]string, error)
	offers    func(context.Context) ([]job.Offer, error)
	list      func(context.Context, string) ([]cloud.Node, error)
	create    func(cloud.Request) ([]cloud.Node, error)
	terminate func(cloud.Match) error
}

func (r *rented) Name() string                                  { return r.name }
func (r *rented) Settle() time.Duration                         { return 0 }
func (r *rented) Regions(ctx context.Context) ([]string, error) { return r.regions(ctx) }
func (r *rented) Offers(ctx context.Context) ([]job.Offer, error) {
	if r.offers == nil {
		return nil, nil
	}
	return r.offers(ctx)
}
func (r *rented) Support() place.Support { return place.Support{} }
func (r *rented) List(ctx context.Context, region string) ([]cloud.Node, error) {
	return r.list(ctx, region)
}
func (r *rented) Create(_ context.Context, q cloud.Request) ([]cloud.Node, error) { return r.create(q) }
func (r *rented) Terminate(_ context.Context, _ string, m cloud.Match) error      { return r.terminate(m) }

// node answers for the agent on a node: what it was asked, without the directory.
type node func(ctx context.Context, args []string) (agent.Status, error)

func (n node) Dial(context.Context, job.Node) (machine.Shell, error) { return n, nil }
func (n node) Close() error                                          { return nil }

func (n node) Run(ctx context.Context, argv []string, _ io.Reader, stdout io.Writer) error {
	st, err := n(ctx, argv)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(st)
}

// hangs is a node that does not answer.
func hangs(ctx context.Context, _ []string) (agent.Status, error) {
	<-ctx.Done()
	return agent.Status{}, context.Cause(ctx)
}

// printed is a node whose run is in a state and has printed a log so far.
func printed(state agent.State, text *[]byte) node {
	return func(_ context.Context, args []string) (agent.Status, error) {
		st := agent.Status{State: state, LogSize: int64(len(*text))}
		if args[0] != "poll" {
			return st, nil
		}
		offset, err1 := strconv.ParseInt(args[2], 10, 64)
		limit, err2 := strconv.ParseInt(args[3], 10, 64)
		st.LogOffset = min(offset, st.LogSize)
		st.Log = (*text)[st.LogOffset:min(st.LogOffset+limit, st.LogSize)]
		return st, errors.Join(err1, err2)
	}
}

// site is a provider and one way to all of its nodes.
func site(p *rented, n node) *Site {
	return &Site{Provider: p, Dialer: n, Dir: func(n job.Node) string { return "/" + n.ID }, ViewEvery: time.Second}
}

// files is an archive in a directory.
func (b *bench) files() (*archive.Archive, string) {
	b.Helper()
	dir := b.TempDir()
	a, err := archive.Open(b.Context(), "file://"+dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = a.Close() })
	return a, dir
}

// block makes an archive fail below a name, until heal is called.
func (b *bench) block(dir, name string) (heal func()) {
	b.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			b.Fatal(err)
		}
	}
}

// submit hands in jobs of one task.
func (b *bench) submit(count int, change ...func(*job.TaskRequest)) []job.ID {
	b.Helper()
	t := job.TaskRequest{Run: "true", Resources: job.Resources{Any: []job.Want{{}}}}
	for _, f := range change {
		f(&t)
	}
	ids, err := b.store.Submit(b.Context(), store.Submission{Request: job.Request{Tasks: []job.TaskRequest{t}}, Count: count})
	if err != nil {
		b.Fatal(err)
	}
	return ids
}

// begun is a driver of a job's first act, whose attempt 1 is in a phase.
func (b *bench) begun(w *Worker, id job.ID, phase job.Phase) *driver {
	b.Helper()
	c, err := b.store.Begin(b.Context(), id, job.StepLaunch, 1, "token", time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	c.Live = []job.Attempt{{
		Number: 1, Phase: phase, Token: "t", CreatedAt: c.Now, ReadyAt: c.Now, Offer: job.Offer{Provider: "far", Region: "r"},
		Nodes: []job.Node{{ID: fmt.Sprint("n", id), Address: "x"}},
	}}
	c.Tasks[0].Attempts = 1
	return w.newDriver(&c, func() error { return nil })
}

// running makes jobs whose code runs, and that are due now.
func (b *bench) running(w *Worker, count int) []job.ID {
	b.Helper()
	ids := b.submit(count)
	for _, id := range ids {
		d := b.begun(w, id, job.PhaseStarted)
		next := d.job.Clone()
		next.Step, next.Tasks[0].Status = job.StepWatch, job.Running
		next.Tasks[0].StartedAt, next.Tasks[0].LastRecoveredAt, next.Live[0].StartedAt = d.now(), d.now(), d.now()
		next.Due = d.now()
		if err := d.commit(b.Context(), next, false); err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

func (b *bench) load(id job.ID) job.Record {
	b.Helper()
	rec, err := b.store.Load(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return rec
}

// Ensure that machines which hang do not keep the watch from those that answer, however many they are and however few
// looks a worker may take at a time: a claim must not end before its look has begun (G1).
func TestG1_HangingMachinesDelayNobody(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", regions: func(context.Context) ([]string, error) { return []string{"r"}, nil }}
	var well string
	w := b.worker(func(c *Config) {
		c.Looks, c.Claim, c.Rules, c.Watchers = 2, 1500*time.Millisecond, job.DefaultRules, 4
		c.Archive, _ = b.files()
		c.Sites = Sites{"far": site(far, func(ctx context.Context, args []string) (agent.Status, error) {
			if strings.HasSuffix(args[1], well) {
				return agent.Status{State: agent.Exited, Exit: &agent.Exit{Stage: "run"}}, nil
			}
			return hangs(ctx, args)
		})}
	})
	far.list = func(ctx context.Context, _ string) ([]cloud.Node, error) { return nil, errors.New("no answer") }
	ids := b.running(w, 24)
	healthy := ids[len(ids)-1] // it is due after all the others
	well = fmt.Sprint("/n", healthy)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var rec job.Record
	if !poll(8*time.Second, func() bool { rec = b.load(healthy); return rec.Status() == job.Succeeded }) {
		t.Fatalf("the job whose code has ended is still %s", rec.Status())
	}
}

// Ensure that a look at a node that hangs leaves time to ask its provider, and is decided on: a probe that never counts
// would never lead to a verdict (G6).
func TestG6_HangingProbesCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	far := &rented{name: "far", regions: func(context.Context) ([]string, error) { return []string{"r"}, nil }}
	w := b.worker(func(c *Config) {
		c.Claim, c.Rules = time.Second, job.DefaultRules
		c.Archive, _ = b.files()
		c.Sites = Sites{"far": site(far, hangs)}
	})
	id := b.running(w, 1)[0]
	far.list = func(context.Context, string) ([]cloud.Node, error) {
		return []cloud.Node{{ID: "n1", Identity: cloud.Identity{Job: id, Attempt: 1}, State: cloud.Running}}, nil
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("probes that count", func() bool { return b.load(id).Look.Fails > 1 })
}

// Ensure that nothing is given up as long as a provider may only be away for a while, whatever the others say, and that
// one that hangs hides nothing but its own offers (G10).
func TestG10_ProviderAwayIsNoVerdict(t *testing.T) {
	t.Parallel()
	says := func(offers []job.Offer, err error) func(context.Context) ([]job.Offer, error) {
		return func(context.Context) ([]job.Offer, error) { return offers, err }
	}
	away := errors.New("503")
	denied := &cloud.Error{Op: "offers", Class: job.Denied, Err: errors.New("no such key")}
	never := []job.Offer{{Provider: "a", Region: "elsewhere"}}
	for name, c := range map[string]struct {
		a, b func(context.Context) ([]job.Offer, error)
		want job.Class // of the fault; "" for none
		none bool      // given up
	}{
		"both answer, nothing fits":       {says(never, nil), says(nil, nil), "", true},
		"one is away, one has nothing":    {says(nil, away), says(nil, nil), job.Transient, false},
		"one is away, nothing fits":       {says(never, nil), says(nil, away), job.Transient, false},
		"one is away, one denies":         {says(nil, away), says(nil, denied), job.Transient, false},
		"one denies, the other has none":  {says(nil, denied), says(nil, nil), job.Denied, false},
		"one denies, the other's are off": {says(nil, denied), says(never, nil), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := b.worker(func(cfg *Config) {
				cfg.Sites = Sites{"a": site(&rented{name: "a", offers: c.a}, nil), "b": site(&rented{name: "b", offers: c.b}, nil)}
			})
			id := b.submit(1, func(t *job.TaskRequest) { t.Resources.Any[0].Region = "here" })[0]
			got, err := b.begun(w, id, job.PhaseClosing).choose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var class job.Class
			if got.Fault != nil {
				class = got.Fault.Class
			}
			if class != c.want || (got.None != nil) != c.none {
				t.Errorf("have the fault %q and %+v", class, got.None)
			}
		})
	}
}

// Ensure that the chains of the store are looked after also while a provider fails or hangs: its outage, together with the
// death of a worker, must not leave jobs unwatched (G1, G10).
func TestG1_ChainsLiveWithoutAProvider(t *testing.T) {
	t.Parallel()
	for name, regions := range map[string]func(context.Context) ([]string, error){
		"fails": func(context.Context) ([]string, error) { return nil, errors.New("503") },
		"hangs": func(ctx context.Context) ([]string, error) { <-ctx.Done(); return nil, context.Cause(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := b.worker(func(c *Config) {
				good := func(context.Context) ([]string, error) { return []string{"r"}, nil }
				c.Sites = Sites{"bad": site(&rented{name: "bad", regions: regions}, nil), "good": site(&rented{name: "good", regions: good}, nil)}
			})
			ctx, done := context.WithTimeout(t.Context(), benchPatience)
			defer done()
			if err := w.takeOver(ctx); err == nil {
				t.Error("nobody is told of the provider")
			}
			for _, chain := range append(slices.Clone(chains), ViewChain("good", "r")) {
				if b.task(chainQueue(chain), chainID(chain, 1)) == nil {
					t.Errorf("nobody runs %s", chain)
				}
			}
		})
	}
}

// Ensure that a list which hangs for longer than a chain may be silent holds one place, not one more after each silence.
func TestHangingListIsOneTick(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const chain = "view:far:r"
	began, end := make(chan struct{}, 8), make(chan struct{})
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { close(end) }) })
	body := func(ctx context.Context, c string) (time.Duration, error) {
		if c == chain {
			began <- struct{}{}
			<-end
		}
		return time.Second, nil
	}
	w := b.ticker(500*time.Millisecond, body)
	b.begin(chain, w.silence)
	<-began
	if poll(3*w.silence, func() bool {
		taken, err := b.store.ChainReclaim(t.Context(), []string{chain}, w.silence)
		return err != nil || len(taken) > 0
	}) {
		t.Error("the chain counts as dead while its worker lives")
	}
	once.Do(func() { close(end) })
}

// Ensure that a cancel which was known when an act began interrupts nothing of it: the act is about the cancel.
func TestKnownCancelInterruptsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	asked := make(chan struct{}, 8)
	far := &rented{name: "far", offers: func(ctx context.Context) ([]job.Offer, error) { return nil, nil }}
	w := b.worker(func(c *Config) { c.Sites, c.LeaseTTL = Sites{"far": site(far, nil)}, 600*time.Millisecond })
	id := b.submit(1)[0]
	d := b.begun(w, id, job.PhaseStarted)
	next := d.job.Clone()
	next.Step, next.Tasks[0].Status, next.Dispatch = job.StepCleanup, job.Cancelling, 2
	next.Live[0].Phase, next.Live[0].Saved = job.PhaseClosing, true
	if err := d.commit(t.Context(), next, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Cancel(t.Context(), id, "test", 0); err != nil {
		t.Fatal(err)
	}
	far.list = func(context.Context, string) ([]cloud.Node, error) { return nil, nil }
	far.terminate = func(cloud.Match) error {
		asked <- struct{}{}
		return sleep(t.Context(), time.Second) // longer than some heartbeats
	}
	if err := w.act(t.Context(), job.StepCleanup, id, 2); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 {
		t.Errorf("the machine was told to end %d times", len(asked))
	}
	if rec := b.load(id); rec.Step != job.StepDone {
		t.Errorf("the job is at step %s: %+v", rec.Step, rec.Fault)
	}
}
