package store

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// TestJournal ensures that a journal keeps its newest lines, whole, within its bound, and goes away by itself.
func TestJournal(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		if text := must[[]byte](t)(b.Journal(b.ctx, 7)); text != nil {
			t.Errorf("the journal of nothing is %q", text)
		}
		const lines = 5000
		for i := range lines {
			b.must(t, b.JournalAppend(b.ctx, 7, fmt.Appendf(nil, "line %d\nand its second part\n", i)))
		}
		text := must[[]byte](t)(b.Journal(b.ctx, 7))
		if len(text) > JournalSize || len(text) < JournalSize/4 {
			t.Errorf("%d bytes", len(text))
		}
		if !bytes.HasSuffix(text, fmt.Appendf(nil, "line %d\nand its second part\n", lines-1)) || !bytes.HasPrefix(text, []byte("line ")) && !bytes.HasPrefix(text, []byte("and ")) {
			t.Errorf("begins with %.20q", text)
		}
		b.must(t, b.JournalAppend(b.ctx, 8, bytes.Repeat([]byte("x"), 2*JournalSize)))
		if ttl := must[time.Duration](t)(b.rdb.TTL(b.ctx, b.keys.of(7, "jrn")).Result()); ttl <= 0 || ttl > journalLife {
			t.Errorf("it lives for %v", ttl)
		}
	})
}
