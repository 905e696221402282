package web

import (
	"context"
	"errors"

	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/history"
)

// Archive is where logs are kept, and jobs that have left the store.
type Archive interface {
	follow.Archive
	history.Archive
}

// errNoArchive says why a job that is not in the store is not found.
var errNoArchive = errors.New("this worker has none")

// jobsOf reads jobs from the store, and those that have left it from the archive: a page of a job is the same before and
// after.
func jobsOf(cfg Config) history.Jobs {
	return history.Jobs{Store: cfg.Store, Open: func(context.Context) (history.Archive, error) {
		if cfg.Archive == nil {
			return nil, errNoArchive
		}
		return cfg.Archive, nil
	}}
}
