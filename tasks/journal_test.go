package tasks

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/job"
)

// Ensure that a line is kept with the job that it is about, whatever the texts in it say, and no other line is kept.
func TestJournalTakesLinesOfJobs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		say  func(log zerolog.Logger)
		want job.ID
	}{
		{"of a job", func(l zerolog.Logger) { l.Info().Int64("job", 7).Msg("hello") }, 7},
		{"a warning", func(l zerolog.Logger) { l.Warn().Int64("job", 8).Msg("hello") }, 8},
		{"too little to keep", func(l zerolog.Logger) { l.Debug().Int64("job", 7).Msg("hello") }, 0},
		{"of no job", func(l zerolog.Logger) { l.Info().Msg("hello") }, 0},
		{"a text that looks like it", func(l zerolog.Logger) { l.Info().Err(errors.New(`x,"job":9,`)).Msg(`,"job":9}`) }, 0},
		{"a text before it", func(l zerolog.Logger) { l.Info().Str("name", `,"job":9`).Int64("job", 7).Msg("hello") }, 7},
		{"no number", func(l zerolog.Logger) { l.Info().Str("job", "7").Msg("hello") }, 0},
	} {
		j := NewJournal()
		tc.say(zerolog.New(zerolog.MultiLevelWriter(j)).With().Str("worker", "w").Logger())
		var got job.ID
		if len(j.lines) > 0 {
			got = (<-j.lines).id
		}
		if got != tc.want {
			t.Errorf("%s: kept for %d, want %d", tc.name, got, tc.want)
		}
	}
}

// Ensure that whoever logs never waits for a journal that does not keep up, and that a line of any length is kept short.
func TestJournalNeverBlocks(t *testing.T) {
	t.Parallel()
	j := NewJournal()
	log := zerolog.New(zerolog.MultiLevelWriter(j)).With().Str("worker", "w").Int64("job", 7).Logger()
	for range 2 * journalQueue {
		log.Info().Msg(strings.Repeat("x", 2*journalLine))
	}
	if len(j.lines) != journalQueue {
		t.Errorf("%d lines wait", len(j.lines))
	}
	if e := <-j.lines; len(e.line) > journalLine {
		t.Errorf("a line of %d bytes", len(e.line))
	}
	var none *Journal
	none.ended(7)
}

// Ensure that a job's journal is in Redis as long as it runs and in the archive when it has ended.
func TestJournalTravels(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, _ := b.files()
	id := b.submit(1)[0]
	j := NewJournal()
	log := zerolog.New(zerolog.MultiLevelWriter(j)).With().Str("worker", "w").Int64("job", int64(id)).Logger()
	log.Info().Msg("one")
	j.write(t.Context(), <-j.lines, b.store, files)
	text, err := b.store.Journal(t.Context(), id)
	if err != nil || !bytes.Contains(text, []byte(`"message":"one"`)) {
		t.Errorf("journal %q, %v", text, err)
	}
	if text, err := files.Journal(t.Context(), id); err != nil || text != nil {
		t.Errorf("archive %q, %v", text, err)
	}
	log.Info().Msg("two")
	j.ended(id)
	j.write(t.Context(), <-j.lines, b.store, files)
	if text, err := files.Journal(t.Context(), id); err != nil || bytes.Count(text, []byte("\n")) != 2 {
		t.Errorf("archive %q, %v", text, err)
	}
	if err := files.RemoveLogs(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if text, err := files.Journal(t.Context(), id); err != nil || text != nil {
		t.Errorf("after the removal %q, %v", text, err)
	}
}
