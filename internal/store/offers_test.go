package store

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestCatalogs ensures that what a provider told stays when it fails later, with the failure beside it, until it tells
// again, and that one that nobody asks any more is forgotten.
func TestCatalogs(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		offer := job.Offer{Provider: "aws", Region: "r", Type: "t", Price: 1, Accelerator: "A100", AcceleratorCount: 8}
		support := json.RawMessage(`{"num_nodes":{"effect":"honoured"}}`)
		b.must(t, b.PutCatalog(b.ctx, Catalog{Provider: "aws", Offers: []job.Offer{offer}, Support: support}))
		b.must(t, b.CatalogFailed(b.ctx, "aws", "503"))
		b.must(t, b.CatalogFailed(b.ctx, "gcp", "no such key"))
		old := Catalog{Provider: "old", AskedAt: must[job.Time](t)(b.Now(b.ctx)).Add(-catalogLife - time.Second)}
		b.must(t, b.putCatalog(b.ctx, old))

		got, now, err := b.Catalogs(b.ctx)
		b.must(t, err)
		if len(got) != 2 {
			t.Fatalf("catalogs %+v, want those of aws and gcp", got)
		}
		aws, gcp := got[0], got[1]
		if aws.Error != "503" || aws.At == 0 || aws.AskedAt < aws.At || aws.AskedAt > now || string(aws.Support) != string(support) {
			t.Errorf("aws: %+v", aws)
		}
		if diff := cmp.Diff([]job.Offer{offer}, aws.Offers); diff != "" {
			t.Errorf("offers (-want +got):\n%s", diff)
		}
		if gcp.Error != "no such key" || gcp.At != 0 || len(gcp.Offers) != 0 {
			t.Errorf("gcp: %+v", gcp)
		}

		b.must(t, b.PutCatalog(b.ctx, Catalog{Provider: "aws", Support: support}))
		got, _, err = b.Catalogs(b.ctx)
		b.must(t, err)
		if aws := got[0]; aws.Error != "" || len(aws.Offers) != 0 {
			t.Errorf("aws after it told again: %+v", aws)
		}
		b.must(t, b.rdb.HSet(b.ctx, catalogsKey(), "gcp", "{").Err())
		if _, _, err := b.Catalogs(b.ctx); err == nil {
			t.Error("a damaged catalog is passed over in silence")
		}
		b.must(t, b.CatalogFailed(b.ctx, "gcp", "503"))
		if _, _, err := b.Catalogs(b.ctx); err != nil {
			t.Errorf("the next answer does not repair it: %v", err)
		}
	})
}

// TestCatalogIsBounded ensures that a provider with more offers than a record may hold loses the dearest, and says so.
func TestCatalogIsBounded(t *testing.T) {
	b := newBench(t, 2)
	c := Catalog{Provider: "aws"}
	for i := range maxOffers + 7 {
		c.Offers = append(c.Offers, job.Offer{Provider: "aws", Type: strconv.Itoa(i), Price: float64(maxOffers - i)})
	}
	b.must(t, b.PutCatalog(b.ctx, c))
	got, _, err := b.Catalogs(b.ctx)
	b.must(t, err)
	if n := len(got[0].Offers); n != maxOffers || got[0].More != 7 || got[0].Offers[0].Price != -6 || got[0].Offers[n-1].Price != maxOffers-7 {
		t.Errorf("%d offers from %g to %g, %d left out", n, got[0].Offers[0].Price, got[0].Offers[n-1].Price, got[0].More)
	}
}
