package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/place"
	"github.com/outlast-dev/outlast/internal/store"
)

// What the providers offer is told in the store by one chain for each of them, so that clients can judge a job file
// without knowing any provider. That costs the same however many jobs there are. Workers themselves ask the provider
// when they choose.
const (
	offersEvery = time.Minute
	offersLimit = 30 * time.Second
	// offersFresh is the age up to which what a provider told counts as all that it has.
	offersFresh = 3 * offersEvery
)

// tellOffers is a tick of the chain of one provider: ask it for all that it has, and keep the answer. If it fails, what
// it told before stays, with the reason.
func (w *Worker) tellOffers(ctx context.Context, site *Site) error {
	provider := site.Provider.Name()
	support, err := json.Marshal(site.Provider.Support())
	if err != nil {
		return fmt.Errorf("encode what %s makes of fields: %w", provider, err)
	}
	var offers []job.Offer
	within(ctx, offersLimit, func(ctx context.Context) { offers, err = site.Provider.Offers(ctx) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return w.store.CatalogFailed(ctx, provider, err.Error())
	}
	return w.store.PutCatalog(ctx, store.Catalog{Provider: provider, Offers: offers, Support: support})
}

// tellOffersNow asks for a tick of each provider's chain: a worker that has just started may have other settings than
// those that ran before.
func (w *Worker) tellOffersNow(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(w.sites)) {
		epoch, err := w.store.ChainWake(ctx, OffersChain(name))
		if err == nil {
			err = w.queue.RunChain(ctx, OffersChain(name), epoch)
		}
		if err != nil {
			w.log.Debug().Err(err).Str("provider", name).Msg("the offers are told a little later")
		}
	}
}

// ReadMarket reads what the providers of a deployment offer, as they told last.
func ReadMarket(ctx context.Context, s *store.Store) (place.Market, error) {
	told, now, err := s.Catalogs(ctx)
	if err != nil {
		return place.Market{}, err
	}
	var m place.Market
	for _, c := range told {
		if doubt := doubtOf(c, now); doubt != "" {
			m.Doubts = append(m.Doubts, doubt)
		}
		if c.At.IsZero() {
			continue
		}
		known := place.Catalog{Provider: c.Provider, Offers: c.Offers}
		if err := json.Unmarshal(c.Support, &known.Support); err != nil {
			return place.Market{}, fmt.Errorf("what %s makes of fields is damaged: %w", c.Provider, err)
		}
		m.Catalogs = append(m.Catalogs, known)
	}
	if len(told) == 0 {
		m.Doubts = append(m.Doubts, "no worker has told yet what its providers offer")
	}
	return m, nil
}

// doubtOf says why a provider may have more than it told, or "".
func doubtOf(c store.Catalog, now job.Time) string {
	age := now.Sub(c.At).Round(time.Second)
	switch {
	case c.At.IsZero():
		return fmt.Sprintf("%s does not tell what it offers: %s", c.Provider, c.Error)
	case c.Error != "":
		return fmt.Sprintf("the offers of %s are %s old, since it does not tell them now: %s", c.Provider, age, c.Error)
	case age > offersFresh:
		return fmt.Sprintf("the offers of %s are %s old: no worker has asked it since", c.Provider, age)
	case c.More > 0:
		return fmt.Sprintf("%s has %d offers more, which are dearer", c.Provider, c.More)
	default:
		return ""
	}
}

// catalogs asks all providers at once for what they have. The fault is that of one which did not answer: of those, one
// that may answer later.
func (d *driver) catalogs(ctx context.Context) ([]place.Catalog, *job.Fault) {
	type answer struct {
		catalog place.Catalog
		err     error
	}
	answers := make(chan answer, len(d.w.sites))
	for name, site := range d.w.sites {
		go within(ctx, offersLimit, func(ctx context.Context) {
			got, err := site.Provider.Offers(ctx)
			answers <- answer{place.Catalog{Provider: name, Offers: got, Support: site.Provider.Support()}, err}
		})
	}
	var all []place.Catalog
	var fault *job.Fault
	for range d.w.sites {
		a := <-answers
		if a.err == nil {
			all = append(all, a.catalog)
			continue
		}
		if f := cloud.FaultOf(a.err); fault == nil || fault.Class.Permanent() {
			fault = f
		}
	}
	return all, fault
}
