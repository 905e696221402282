package tasks

import (
	"context"
	"sync"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
)

// mostMasks bounds the tasks whose secrets a worker keeps at hand.
const mostMasks = 4096

// masks hides the secrets of tasks in their output. What a task's are is found out once by a worker, when the first of its
// output comes by; a quiet job costs nothing.
type masks struct {
	mu  sync.Mutex
	all map[taskKey]*seal.Masker // nil for a task without anything to hide
}

type taskKey struct {
	id   job.ID
	task int
}

// peek returns what is known already, nil for nothing.
func (m *masks) peek(key taskKey) (*seal.Masker, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mask, known := m.all[key]
	return mask, known
}

func (m *masks) put(key taskKey, mask *seal.Masker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[taskKey]*seal.Masker{}
	}
	for old := range m.all { // any will do: it is found out again
		if len(m.all) < mostMasks {
			break
		}
		delete(m.all, old)
	}
	m.all[key] = mask
}

// masker hides the secrets of a task, unless its user wants to see them. An error means that they are not known, and so
// that the output must stay where it is (G12).
func (d *driver) masker(ctx context.Context, task int) (*seal.Masker, error) {
	key := taskKey{d.job.ID, task}
	if mask, known := d.w.masks.peek(key); known {
		return mask, nil
	}
	req, err := d.request(ctx)
	if err != nil {
		return nil, err
	}
	var mask *seal.Masker
	if !req.ShowSecrets {
		secrets, err := d.secrets(ctx, task, req.Tasks[task].Secrets)
		if err != nil {
			return nil, err
		}
		mask = seal.NewMasker(secrets)
	}
	d.w.masks.put(key, mask)
	return mask, nil
}
