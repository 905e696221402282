package store

import (
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

// View is all machines of the deployment in one region of a provider, as the provider listed them.
type View struct {
	Provider string          `json:"provider"`
	Region   string          `json:"region"`
	At       job.Time        `json:"at"` // when the provider was asked
	Machines json.RawMessage `json:"machines"`
	Error    string          `json:"error,omitempty"` // why the last look failed; the machines are then those of At
}

// PutView keeps a view, unless one of a later look is there.
func (s *Store) PutView(ctx context.Context, v View) error {
	keys := []string{deploymentPrefix + "views", deploymentPrefix + "viewed"}
	if err := s.lua.viewPut.Run(ctx, s.rdb, keys, v.Provider+"/"+v.Region, int64(v.At), mustJSON(v)).Err(); err != nil {
		return unavailable("keep the view", err)
	}
	return nil
}

// Views reads the views of all regions, sorted by provider and region.
func (s *Store) Views(ctx context.Context) ([]View, error) {
	m, err := s.rdb.HGetAll(ctx, deploymentPrefix+"views").Result()
	if err != nil {
		return nil, unavailable("read the views", err)
	}
	var out []View
	for key, text := range m {
		var v View
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, fmt.Errorf("view of %s: %w", key, err)
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b View) int { return strings.Compare(a.Provider+"/"+a.Region, b.Provider+"/"+b.Region) })
	return out, nil
}

// View reads the view of one region; ErrNotFound if nobody has looked yet.
func (s *Store) View(ctx context.Context, provider, region string) (View, error) {
	var v View
	b, err := s.rdb.HGet(ctx, deploymentPrefix+"views", provider+"/"+region).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return v, fmt.Errorf("view of %s/%s: %w", provider, region, ErrNotFound)
	case err != nil:
		return v, unavailable("read the view", err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("view of %s/%s: %w", provider, region, err)
	}
	return v, nil
}

// Worker is a worker as it last reported itself.
type Worker struct {
	Name      string   `json:"name"`
	Host      string   `json:"host"`
	PID       int      `json:"pid"`
	Version   string   `json:"version"`
	URL       string   `json:"url,omitempty"` // of its pages
	StartedAt job.Time `json:"started_at"`
	SeenAt    job.Time `json:"seen_at"`
	Ready     bool     `json:"ready"`
	Why       string   `json:"why,omitempty"` // why it is not ready
	Acts      int      `json:"acts"`          // acts under way
	Looks     int64    `json:"looks"`         // looks at jobs since its start
}

// workerLife is how long a silent worker stays in the list.
const workerLife = 15 * time.Minute

// PutWorker reports a worker. SeenAt is set here.
func (s *Store) PutWorker(ctx context.Context, w Worker) error {
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	w.SeenAt = now
	if err := s.rdb.HSet(ctx, deploymentPrefix+"workers", w.Name, mustJSON(w)).Err(); err != nil {
		return unavailable("report the worker", err)
	}
	return nil
}

// DropWorker takes a worker that stops out of the list.
func (s *Store) DropWorker(ctx context.Context, name string) error {
	if err := s.rdb.HDel(ctx, deploymentPrefix+"workers", name).Err(); err != nil {
		return unavailable("drop the worker", err)
	}
	return nil
}

// Workers reads the workers that reported lately, and forgets the others.
func (s *Store) Workers(ctx context.Context) ([]Worker, error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	m, err := s.rdb.HGetAll(ctx, deploymentPrefix+"workers").Result()
	if err != nil {
		return nil, unavailable("read the workers", err)
	}
	var out []Worker
	for name, text := range m {
		var w Worker
		if json.Unmarshal([]byte(text), &w) != nil || now.Sub(w.SeenAt) > workerLife {
			if err := s.rdb.HDel(ctx, deploymentPrefix+"workers", name).Err(); err != nil {
				return nil, unavailable("forget a worker", err)
			}
			continue
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Worker) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
