package tasks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a worker tells what its providers offer as soon as it runs, that a provider which fails is told of and hides
// no other, and that it leaves what it told before.
func TestOffersAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	one := []job.Offer{{Provider: "good", Region: "r", Type: "t", Price: 1}}
	good := &rented{name: "good", regions: nowhere, offers: func(context.Context) ([]job.Offer, error) { return one, nil }}
	bad := &rented{name: "bad", regions: nowhere, offers: func(context.Context) ([]job.Offer, error) { return nil, errors.New("503") }}
	w := b.worker(func(c *Config) { c.Sites = Sites{"good": site(good, nil), "bad": site(bad, nil)} })
	if m, err := ReadMarket(t.Context(), b.store); err != nil || m.Certain() || len(m.Catalogs) != 0 {
		t.Fatalf("before anybody told: %+v, %v", m, err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var m place.Market
	b.until("both providers were asked", func() bool {
		told, _, err := b.store.Catalogs(t.Context())
		return err == nil && len(told) == 2
	})
	m, err := ReadMarket(t.Context(), b.store)
	if err != nil {
		t.Fatal(err)
	}
	want := place.Market{
		Catalogs: []place.Catalog{{Provider: "good", Offers: one, Support: place.Support{}}},
		Doubts:   []string{"bad does not tell what it offers: 503"},
	}
	if diff := cmp.Diff(want, m); diff != "" || m.Certain() {
		t.Errorf("market (-want +got):\n%s", diff)
	}
}

func nowhere(context.Context) ([]string, error) { return nil, nil }

// Ensure that what was told too long ago, in part or not at all is no reason to refuse a job: unknown is not no.
func TestDoubts(t *testing.T) {
	t.Parallel()
	const now = job.Time(10_000_000)
	ago := func(d time.Duration) job.Time { return now.Add(-d) }
	for want, c := range map[string]store.Catalog{
		"":                                       {At: ago(2 * time.Minute)},
		"p does not tell what it offers: no key": {Error: "no key"},
		"the offers of p are 4m0s old: no worker has asked it since":         {At: ago(4 * time.Minute)},
		"the offers of p are 1m0s old, since it does not tell them now: 503": {At: ago(time.Minute), Error: "503"},
		"p has 3 offers more, which are dearer":                              {At: now, More: 3},
	} {
		c.Provider = "p"
		if got := doubtOf(c, now); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

// Ensure that a worker which does not serve the provider of a job leaves it to others, in a look and in an act, and that
// this counts against no budget of the job (G10).
func TestG10_UnservedProviderIsAPause(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*bench, *Worker) job.ID{
		"look": func(b *bench, w *Worker) job.ID {
			id := b.running(w, 1)[0]
			if err := w.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			return id
		},
		"act": func(b *bench, w *Worker) job.ID {
			id := b.submit(1)[0]
			d := b.begun(w, id, job.PhaseReady)
			if err := w.conclude(b.Context(), d, d.drive(b.Context())); err != nil {
				b.Fatal(err)
			}
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := b.worker(func(c *Config) { c.Sites = Sites{"near": site(&rented{name: "near", regions: nowhere}, nil)} })
			id := leave(b, w)
			var rec job.Record
			b.until("the job waits for another worker", func() bool { rec = b.load(id); return rec.Wait.For.Code == job.CodeProvider })
			if rec.Fault.N != 0 || rec.Status().Terminal() || rec.Due <= rec.Wait.Since {
				t.Errorf("status %s, faults %+v, due %d, waits %+v", rec.Status(), rec.Fault, rec.Due, rec.Wait)
			}
		})
	}
}
