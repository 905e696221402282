package store

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestTail ensures, for every sequence of pieces as a driver and its successor send them, doubled, overlapping, late or
// after a gap: what is read is what the log has at that offset, the end is never lost, and the tail stays bounded.
func TestTail(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		whole := log(3 * TailSize)
		rapid.Check(t, func(rt *rapid.T) {
			b.again(rt)
			end := -1 // of what the tail must reach
			rt.Repeat(map[string]func(*rapid.T){
				"append": func(t *rapid.T) {
					at := rapid.IntRange(0, len(whole)).Draw(t, "at")
					if end >= 0 && rapid.IntRange(0, 3).Draw(t, "near") > 0 { // as it goes nearly always
						at = max(0, min(end-rapid.IntRange(-10, 1000).Draw(t, "before"), len(whole)))
					}
					size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 2*TailSize)).Draw(t, "size")
					piece := whole[at:min(at+size, len(whole))]
					for range rapid.IntRange(1, 2).Draw(t, "times") {
						b.must(t, b.TailAppend(b.ctx, 1, 0, 1, int64(at), piece))
					}
					end = max(end, at+len(piece))
				},
				"read": func(t *rapid.T) {
					offset := rapid.Int64Range(0, int64(len(whole))).Draw(t, "offset")
					limit := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, TailSize)).Draw(t, "limit")
					p := must[Piece](t)(b.TailRead(b.ctx, 1, 0, 1, offset, limit))
					if int(p.End) != end || p.End < 0 && len(p.Data) > 0 {
						t.Fatalf("the tail ends at %d, wanted %d", p.End, end)
					}
					if p.End < 0 {
						return
					}
					if p.Offset < offset || len(p.Data) > limit || !bytes.Equal(p.Data, whole[p.Offset:int(p.Offset)+len(p.Data)]) {
						t.Fatalf("from %d at most %d: got %d bytes from %d that are not the log's", offset, limit, len(p.Data), p.Offset)
					}
					if limit > 0 && p.Offset < p.End && len(p.Data) == 0 {
						t.Fatalf("nothing was read from %d, the tail ends at %d", offset, p.End)
					}
				},
				"": func(t *rapid.T) {
					if n := must[int64](t)(b.rdb.StrLen(b.ctx, b.tailKeys(1, 0, 1)[0]).Result()); n > TailSize {
						t.Fatalf("the tail has %d bytes", n)
					}
				},
			})
		})
	})
}

// log is bytes that are different everywhere.
func log(size int) []byte {
	out := make([]byte, size)
	x := uint32(1)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}

// TestTailIsFleeting ensures that both keys of a tail go away by themselves.
func TestTailIsFleeting(t *testing.T) {
	b := newBench(t, 2)
	b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 0, []byte("hello")))
	for _, key := range b.tailKeys(1, 0, 1) {
		if ttl := must[time.Duration](t)(b.rdb.TTL(b.ctx, key).Result()); ttl <= 0 || ttl > tailLife {
			t.Errorf("%s lives for %v", key, ttl)
		}
	}
	p := must[Piece](t)(b.TailRead(b.ctx, 1, 0, 2, 0, 100))
	if p.End != -1 || len(p.Data) != 0 {
		t.Errorf("another attempt's tail is %+v", p)
	}
}

// TestTailMarks ensures that the marks of a tail come with its bytes, once, go with them, and do not fill the memory.
func TestTailMarks(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		mark := func(at int) job.Mark { return job.Mark{Offset: int64(at), Value: int64(1000 + at)} }
		for range 2 {
			b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 0, []byte("0123456789"), job.Mark{Kind: job.MarkSkew, Value: -7}, mark(5), mark(10)))
			b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 10, []byte("0123456789"), mark(15), mark(20)))
		}
		for _, tc := range []struct {
			from int64
			most int
			want []job.Mark
		}{
			{0, 100, []job.Mark{{Kind: job.MarkSkew, Value: -7}, mark(5), mark(10), mark(15), mark(20)}},
			{6, 6, []job.Mark{mark(10), mark(15)}},
			{16, 4, []job.Mark{mark(20)}},
			{20, 4, nil},
		} {
			p := must[Piece](t)(b.TailRead(b.ctx, 1, 0, 1, tc.from, tc.most))
			if diff := cmp.Diff(tc.want, p.Marks); diff != "" {
				t.Errorf("%d bytes from %d: marks (-want +got):\n%s", tc.most, tc.from, diff)
			}
		}
		for at := 20; at < 20+10_000; at++ {
			b.must(t, b.TailAppend(b.ctx, 1, 0, 1, int64(at), []byte("x"), mark(at+1)))
		}
		if n := must[int64](t)(b.rdb.StrLen(b.ctx, b.tailKeys(1, 0, 1)[2]).Result()); n > 64<<10 {
			t.Errorf("the marks take %d bytes", n)
		}
		b.must(t, b.TailAppend(b.ctx, 1, 0, 1, 10_020, make([]byte, TailSize), mark(10_020+TailSize)))
		p := must[Piece](t)(b.TailRead(b.ctx, 1, 0, 1, 0, TailSize))
		if len(p.Marks) != 1 || p.Marks[0] != mark(10_020+TailSize) {
			t.Errorf("%d marks are left of what was cut off", len(p.Marks))
		}
	})
}
