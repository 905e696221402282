package local

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a creator which was frozen with the lock of a zone keeps others for a bounded time: they are told so, with a class
// that lets them come again, or go to another zone.
func TestFrozenCreatorKeepsNobodyForLong(t *testing.T) {
	t.Parallel()
	p := &Provider{patience: 50 * time.Millisecond}
	path := filepath.Join(t.TempDir(), ".lock")
	frozen := flock.New(path)
	if err := frozen.Lock(); err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	if err := p.take(t.Context(), flock.New(path)); err == nil || cloud.ClassOf(err) != job.Transient {
		t.Errorf("the zone's lock: %v, want a transient error", err)
	}
	if err := p.take(t.Context(), flock.New(path+"-of-another-zone")); err != nil {
		t.Errorf("another lock: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.take(ctx, flock.New(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cut off gave %v", err)
	}
}
