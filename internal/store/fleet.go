package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

// View is when and how well the machines of the deployment in one region of a provider were listed. They are stored beside it,
// in blocks: see [Store.ViewBlocks].
type View struct {
	Provider string   `json:"provider"`
	Region   string   `json:"region"`
	At       job.Time `json:"at"`              // when the provider was asked
	Error    string   `json:"error,omitempty"` // why the last look failed; the machines are then those of At
	// Machines are all of them, if a worker of an older version stored them last; the blocks are then older.
	Machines json.RawMessage `json:"machines"`
}

// inBlocks stands for the machines of a view whose machines are in blocks. An older version, which knows none, cannot read it,
// and says so: else it would show a region with no machines.
const inBlocks = `"in blocks"`

func (v View) text() []byte {
	if v.Machines == nil {
		v.Machines = json.RawMessage(inBlocks)
	}
	return mustJSON(v)
}

// ViewBlock is a change of some machines of a view. What they are is not looked at here.
type ViewBlock struct {
	Number   int64
	Was      string // the marks that it had; if it has others by now, it is left alone
	Marks    string // tell whether machines have changed; "" takes the block out
	Machines []byte
}

// viewBlocksAtOnce bounds the blocks in one call of the script: well below a millisecond.
const viewBlocksAtOnce = 32

// PutView keeps a view with those of its blocks that have changed, unless one of a later look is there. ErrStale says that
// another look has changed some of the blocks meanwhile: those are as that one left them.
func (s *Store) PutView(ctx context.Context, v View, blocks ...ViewBlock) error {
	place := v.Provider + "/" + v.Region
	keys := []string{deploymentPrefix + "views", deploymentPrefix + "viewed", s.keys.viewBlocks(place), s.keys.viewMarks(place)}
	refused := int64(0)
	for {
		part := blocks[:min(len(blocks), viewBlocksAtOnce)]
		blocks = blocks[len(part):]
		args := []any{place, int64(v.At), ""}
		if len(blocks) == 0 && refused == 0 { // last: the time of a view is that of a look that is there as a whole
			args[2] = v.text()
		}
		for _, b := range part {
			args = append(args, b.Number, b.Was, b.Marks, b.Machines)
		}
		n, err := s.lua.viewPut.Run(ctx, s.rdb, keys, args...).Int64()
		switch {
		case err != nil:
			return unavailable("keep the view", err)
		case n < 0:
			return nil // a later look is there
		}
		if refused += n; len(blocks) > 0 {
			continue
		}
		if refused > 0 {
			return fmt.Errorf("%d parts of the view of %s: %w", refused, place, ErrStale)
		}
		return nil
	}
}

// Views reads when and how well all regions were listed, sorted by provider and region.
func (s *Store) Views(ctx context.Context) ([]View, error) {
	m, err := s.rdb.HGetAll(ctx, deploymentPrefix+"views").Result()
	if err != nil {
		return nil, unavailable("read the views", err)
	}
	var out []View
	for place, text := range m {
		v, err := viewOf(place, text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b View) int { return strings.Compare(a.Provider+"/"+a.Region, b.Provider+"/"+b.Region) })
	return out, nil
}

// View reads when and how well one region was listed; ErrNotFound if nobody has looked yet.
func (s *Store) View(ctx context.Context, provider, region string) (View, error) {
	place := provider + "/" + region
	text, err := s.rdb.HGet(ctx, deploymentPrefix+"views", place).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return View{}, fmt.Errorf("view of %s: %w", place, ErrNotFound)
	case err != nil:
		return View{}, unavailable("read the view", err)
	}
	return viewOf(place, text)
}

func viewOf(place, text string) (View, error) {
	var v View
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return View{}, fmt.Errorf("view of %s: %w", place, err)
	}
	if string(v.Machines) == inBlocks {
		v.Machines = nil
	}
	return v, nil
}

// ViewMarks reads the marks of the blocks of a view, by their numbers.
func (s *Store) ViewMarks(ctx context.Context, provider, region string) (map[int64]string, error) {
	m, err := s.rdb.HGetAll(ctx, s.keys.viewMarks(provider+"/"+region)).Result()
	if err != nil {
		return nil, unavailable("read the marks of a view", err)
	}
	out := make(map[int64]string, len(m))
	for number, marks := range m {
		out[asInt(number)] = marks
	}
	return out, nil
}

// ViewBlocks reads blocks of a view: those with the numbers, or all if none are given.
func (s *Store) ViewBlocks(ctx context.Context, provider, region string, numbers ...int64) (map[int64][]byte, error) {
	key, out := s.keys.viewBlocks(provider+"/"+region), map[int64][]byte{}
	if len(numbers) == 0 {
		m, err := s.rdb.HGetAll(ctx, key).Result()
		if err != nil {
			return nil, unavailable("read a view", err)
		}
		for number, block := range m {
			out[asInt(number)] = []byte(block)
		}
		return out, nil
	}
	for part := range slices.Chunk(numbers, readAtOnce) {
		fields := make([]string, len(part))
		for i, number := range part {
			fields[i] = strconv.FormatInt(number, 10)
		}
		blocks, err := s.rdb.HMGet(ctx, key, fields...).Result()
		if err != nil {
			return nil, unavailable("read a view", err)
		}
		for i, block := range blocks {
			if text, ok := block.(string); ok {
				out[part[i]] = []byte(text)
			}
		}
	}
	return out, nil
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
