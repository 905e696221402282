package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/job"
)

const (
	// JournalSize bounds a journal, in bytes.
	JournalSize = 64 << 10
	// journalLife is how long a journal outlives its last line. When the job has ended the archive has it.
	journalLife = 30 * 24 * time.Hour
)

// JournalAppend adds whole lines, each with its end, to what workers have logged about a job.
func (s *Store) JournalAppend(ctx context.Context, id job.ID, lines []byte) error {
	err := s.lua.journalAppend.Run(ctx, s.rdb, []string{s.keys.of(id, "jrn")}, lines, JournalSize, int64(journalLife.Seconds())).Err()
	if err != nil {
		return unavailable("write the journal", err)
	}
	return nil
}

// Journal reads what workers have logged about a job, one JSON object a line; nil if there is nothing.
func (s *Store) Journal(ctx context.Context, id job.ID) ([]byte, error) {
	text, err := s.rdb.Get(ctx, s.keys.of(id, "jrn")).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable("read the journal", err)
	}
	return text, nil
}
