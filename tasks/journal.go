package tasks

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	journalQueue = 1024                   // lines on their way
	journalBatch = 256                    // lines in one write
	journalLine  = 2 << 10                // bytes of one line; more is cut off
	journalPause = 100 * time.Millisecond // for more lines to come along
	journalLimit = 5 * time.Second        // for one write
)

// Journal is a part of a worker's log: what concerns a job is also kept with the job, for whoever asks what its drivers did.
// It takes lines of zerolog as they are written. It never blocks and never fails: when it cannot keep up, or Redis is away,
// lines are lost to it, and are only in the worker's own log.
type Journal struct{ lines chan journalEntry }

// journalEntry is one line, or without one the end of a job, whose journal goes to the archive.
type journalEntry struct {
	id   job.ID
	line []byte
}

// NewJournal makes a journal. It is empty until a worker with it is started.
func NewJournal() *Journal { return &Journal{lines: make(chan journalEntry, journalQueue)} }

// Write implements io.Writer. Lines without a level are not kept.
func (*Journal) Write(line []byte) (int, error) { return len(line), nil }

// WriteLevel implements [zerolog.LevelWriter].
func (j *Journal) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if id, ok := jobOf(line); ok && level >= zerolog.InfoLevel && level < zerolog.NoLevel {
		j.put(journalEntry{id, bytes.Clone(line[:min(len(line), journalLine)])})
	}
	return len(line), nil
}

func (j *Journal) put(e journalEntry) {
	if j == nil {
		return
	}
	select {
	case j.lines <- e:
	default:
	}
}

// ended tells that nothing more will be done about a job.
func (j *Journal) ended(id job.ID) { j.put(journalEntry{id: id}) }

// jobOf finds the job that a line of JSON is about. Within a text the quotes would be escaped, so that nobody's words are
// taken for it.
func jobOf(line []byte) (job.ID, bool) {
	_, rest, found := bytes.Cut(line, []byte(`,"job":`))
	if !found {
		return 0, false
	}
	end := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	id, err := strconv.ParseInt(string(rest[:max(end, 0)]), 10, 64)
	return job.ID(id), err == nil && id > 0
}

// start writes lines until stop is called, which returns when also those are written that wait then.
func (j *Journal) start(s *store.Store, files *archive.Archive) (stop func()) {
	if j == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		j.run(ctx, s, files)
	}()
	return func() {
		end()
		<-done
	}
}

// run writes the lines until ctx ends, and then what is left.
func (j *Journal) run(ctx context.Context, s *store.Store, files *archive.Archive) {
	for {
		select {
		case <-ctx.Done():
			last, done := context.WithTimeout(context.Background(), journalLimit) // for all: a worker that ends waits for it
			defer done()
			for range len(j.lines)/journalBatch + 1 {
				if len(j.lines) > 0 {
					j.write(last, <-j.lines, s, files)
				}
			}
			return
		case first := <-j.lines:
			_ = sleep(ctx, journalPause)
			j.write(context.Background(), first, s, files)
		}
	}
}

// write writes a line and those that wait behind it. A job that has ended goes to the archive.
func (j *Journal) write(ctx context.Context, first journalEntry, s *store.Store, files *archive.Archive) {
	ctx, done := context.WithTimeout(ctx, journalLimit)
	defer done()
	texts, ended := map[job.ID][]byte{}, []job.ID{}
	for e, n := first, 1; ; n++ {
		if e.line == nil {
			ended = append(ended, e.id)
		} else {
			texts[e.id] = append(append(texts[e.id], bytes.TrimRight(e.line, "\n")...), '\n')
		}
		if n >= journalBatch || len(j.lines) == 0 {
			break
		}
		e = <-j.lines // this is the only reader
	}
	for id, text := range texts {
		if err := s.JournalAppend(ctx, id, text); err != nil {
			return // lost, as said
		}
	}
	for _, id := range ended {
		if text, err := s.Journal(ctx, id); err == nil && len(text) > 0 && files != nil {
			_ = files.PutJournal(ctx, id, text) // lost, as said; Redis still has it
		}
	}
}
