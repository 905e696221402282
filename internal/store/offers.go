package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// Catalog is all that one provider offers, as it told a worker. Those who have no provider judge job files by it.
type Catalog struct {
	Provider string          `json:"provider"`
	At       job.Time        `json:"at"`       // when it told
	AskedAt  job.Time        `json:"asked_at"` // when it was asked last
	Offers   []job.Offer     `json:"offers"`
	More     int             `json:"more,omitempty"`  // offers that were left out: the dearest of too many
	Support  json.RawMessage `json:"support"`         // a place.Support
	Error    string          `json:"error,omitempty"` // why it did not tell when it was asked last; the rest is then that of At
}

const (
	// maxOffers bounds a catalog, with about 200 bytes each: a cloud has some thousand kinds of machines in all regions.
	maxOffers = 10_000
	// catalogLife is how long a provider stays in the list that nobody asks any more: it was taken out of the settings,
	// or no worker runs.
	catalogLife = 15 * time.Minute
)

func catalogsKey() string { return deploymentPrefix + "offers" }

// PutCatalog keeps what a provider told. Both times are set here.
func (s *Store) PutCatalog(ctx context.Context, c Catalog) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	c.At, c.AskedAt, c.Error = now, now, ""
	if more := len(c.Offers) - maxOffers; more > 0 {
		c.Offers = slices.SortedFunc(slices.Values(c.Offers), func(a, b job.Offer) int {
			return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Key(), b.Key()))
		})[:maxOffers]
		c.More += more
	}
	return s.putCatalog(ctx, c)
}

// CatalogFailed keeps why a provider did not tell, beside what it told before.
func (s *Store) CatalogFailed(ctx context.Context, provider, why string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	var c Catalog
	text, err := s.rdb.HGet(ctx, catalogsKey(), provider).Bytes()
	switch {
	case errors.Is(err, redis.Nil): // it has never told anything
	case err != nil:
		return unavailable("read the offers", err)
	default:
		if json.Unmarshal(text, &c) != nil {
			c = Catalog{} // damaged: as if it had never told anything
		}
	}
	c.Provider, c.AskedAt, c.Error = provider, now, why
	return s.putCatalog(ctx, c)
}

func (s *Store) putCatalog(ctx context.Context, c Catalog) error {
	if err := s.rdb.HSet(ctx, catalogsKey(), c.Provider, mustJSON(c)).Err(); err != nil {
		return unavailable("keep the offers", err)
	}
	return nil
}

// Catalogs reads what all providers of the deployment offer, sorted by provider, and the time by the store's clock.
// Providers that nobody asks any more are left out.
func (s *Store) Catalogs(ctx context.Context) ([]Catalog, job.Time, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	m, err := s.rdb.HGetAll(ctx, catalogsKey()).Result()
	if err != nil {
		return nil, 0, unavailable("read the offers", err)
	}
	var out []Catalog
	for provider, text := range m {
		var c Catalog
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return nil, 0, fmt.Errorf("the offers of %q are damaged: %w", provider, err)
		}
		if now.Sub(c.AskedAt) <= catalogLife {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Catalog) int { return strings.Compare(a.Provider, b.Provider) })
	return out, now, nil
}
