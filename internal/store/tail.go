package store

import (
	"context"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

const (
	// TailSize bounds a live tail, in bytes. The archive falls behind by less than that, unless the log grows faster than it can be moved.
	TailSize = 256 << 10
	// tailLife is how long a tail outlives its last line. By then the archive has all of it.
	tailLife = 30 * time.Minute
)

func (s *Store) tailKeys(id job.ID, task, attempt int) []string {
	key := s.keys.of(id, "tail") + fmt.Sprintf(":%d:%d", task, attempt)
	return []string{key, key + ":base", key + ":marks"}
}

// TailAppend adds the piece of an attempt's log that begins at offset to its live tail. A piece that is there already is
// not added again. The marks are those of the piece, sorted by offset.
func (s *Store) TailAppend(ctx context.Context, id job.ID, task, attempt int, offset int64, piece []byte, marks ...job.Mark) error {
	err := s.lua.tailAppend.Run(ctx, s.rdb, s.tailKeys(id, task, attempt), offset, piece, TailSize, int64(tailLife.Seconds()),
		job.AppendMarks([]byte{}, marks...)).Err()
	if err != nil {
		return unavailable("write the log tail", err)
	}
	return nil
}

// Piece is a part of a live tail.
type Piece struct {
	Offset int64 // of its first byte in the whole log; later than asked for if the tail has moved on
	Data   []byte
	Marks  []job.Mark // of the data, and the next one after it
	End    int64      // offset of the tail's end; -1 if there is no tail
}

// TailRead reads up to limit bytes of an attempt's live tail from an offset.
func (s *Store) TailRead(ctx context.Context, id job.ID, task, attempt int, offset int64, limit int) (Piece, error) {
	reply, err := s.lua.tailRead.Run(ctx, s.rdb, s.tailKeys(id, task, attempt), offset, limit).Slice()
	if err != nil {
		return Piece{}, unavailable("read the log tail", err)
	}
	return Piece{
		Offset: asInt(reply[0]), Data: []byte(asString(reply[1])), End: asInt(reply[2]), Marks: job.ParseMarks([]byte(asString(reply[3]))),
	}, nil
}
