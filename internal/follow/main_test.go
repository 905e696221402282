package follow

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"go.uber.org/goleak"
	_ "gocloud.dev/blob/memblob" // mem://: fast, and without threads that wait for a disk

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store and an archive in memory, with one record.
type world struct {
	mu    sync.Mutex
	rec   job.Record
	past  []job.Attempt
	tails map[key]store.Piece // the whole live tail of an attempt
	files *archive.Archive
	down  error // what the store answers
	loads int
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	files, err := archive.Open(context.Background(), "mem://")
	if err != nil {
		tb.Fatal(err)
	}
	rec := job.NewRecord(job.HeadOf(7, job.Request{Name: "train", Tasks: []job.TaskRequest{{Run: "true"}, {Run: "true"}}}, 1))
	return &world{rec: rec, tails: map[key]store.Piece{}, files: files}
}

// change edits the world as a worker would.
func (w *world) change(f func(r *job.Record)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.rec)
}

func (w *world) Load(context.Context, job.ID) (job.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.loads++; w.down != nil {
		return job.Record{}, w.down
	}
	return w.rec.Clone(), nil
}

func (w *world) Past(context.Context, job.ID) ([]job.Attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.past, w.down
}

func (w *world) TailRead(_ context.Context, _ job.ID, task, attempt int, offset int64, limit int) (store.Piece, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tail, there := w.tails[key{task, attempt}]
	switch {
	case w.down != nil:
		return store.Piece{}, w.down
	case !there:
		return store.Piece{Offset: -1, End: -1}, nil
	}
	end := tail.Offset + int64(len(tail.Data))
	from := max(offset, tail.Offset)
	if from >= end {
		return store.Piece{Offset: from, End: end}, nil
	}
	data := tail.Data[from-tail.Offset:]
	return store.Piece{Offset: from, Data: data[:min(len(data), limit)], End: end}, nil
}

// tail replaces an attempt's live tail by one that begins at offset.
func (w *world) tail(task, attempt int, offset int64, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tails[key{task, attempt}] = store.Piece{Offset: offset, Data: []byte(text)}
}

// keep puts a part of an attempt's log into the archive.
func (w *world) keep(tb testing.TB, task, attempt int, offset int64, text string) {
	tb.Helper()
	if err := w.files.PutLog(context.Background(), archive.LogKey{Job: 7, Task: task, Attempt: attempt}, offset, []byte(text)); err != nil {
		tb.Fatal(err)
	}
}

// started is a live attempt that runs the user's code.
func started(number int) job.Attempt {
	return job.Attempt{Number: number, Phase: job.PhaseStarted, StartedAt: 1, Offer: job.Offer{Provider: "local", Region: "a"}}
}

// lines is text of some lines.
func lines(from, to int) string {
	text := ""
	for i := from; i < to; i++ {
		text += fmt.Sprintf("line %d\n", i)
	}
	return text
}

// broken is an archive that does not answer.
type broken struct{}

func (broken) Chunks(context.Context, archive.LogKey, int64) iter.Seq2[archive.Chunk, error] {
	return func(yield func(archive.Chunk, error) bool) { yield(archive.Chunk{}, errBroken) }
}
func (broken) Last(context.Context, archive.LogKey, int) ([]archive.Chunk, error) {
	return nil, errBroken
}
func (broken) Notice(context.Context, job.ID) (archive.Notice, error) {
	return archive.Notice{}, errBroken
}

var errBroken = fmt.Errorf("the bucket is on fire")
