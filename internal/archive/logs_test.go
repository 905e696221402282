package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlast-dev/outlast/internal/job"
)

var key = LogKey{Job: 7, Task: 1, Attempt: 2, Node: 3}

// tester is a testing.T or a rapid.T.
type tester interface {
	rapid.TB
	Context() context.Context
}

// put stores text at an offset.
func put(t tester, a *Archive, key LogKey, offset int64, text string) {
	t.Helper()
	if err := a.PutLog(t.Context(), key, offset, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// read returns the whole log from a position on.
func read(t tester, a *Archive, key LogKey, from int64) string {
	t.Helper()
	r, err := a.ReadLog(t.Context(), key, from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Any set of overlapping segments that covers a stream reads back as the stream, from any position.
func TestOverlappingSegmentsReadBackAsOneStream(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n")), 1, 60, -1).Draw(t, "stream")
		size := len(stream)
		a := inMemory(t)
		// Cuts cover the stream; the writes around them start earlier and end later, and come in any order.
		type span struct{ from, to int }
		var spans []span
		for at := 0; at < size; {
			to := rapid.IntRange(at+1, size).Draw(t, "to")
			spans = append(spans, span{rapid.IntRange(0, at).Draw(t, "early"), rapid.IntRange(to, size).Draw(t, "late")})
			at = to
		}
		for range rapid.IntRange(0, 5).Draw(t, "extra") {
			from := rapid.IntRange(0, size-1).Draw(t, "from")
			spans = append(spans, span{from, rapid.IntRange(from, size).Draw(t, "to")})
		}
		for _, s := range rapid.Permutation(spans).Draw(t, "order") {
			put(t, a, key, int64(s.from), stream[s.from:s.to])
		}

		from := rapid.IntRange(0, size+2).Draw(t, "read from")
		if got, want := read(t, a, key, int64(from)), stream[min(from, size):]; got != want {
			t.Errorf("read %q, want %q", got, want)
		}
		info, err := a.LogSize(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(LogInfo{LogKey: key, Size: int64(size)}, info); diff != "" {
			t.Error(diff)
		}
	})
}

// Whatever is there and whatever is missing: the bytes that are there are read in order, each gap makes one
// line of its own, and the last lines of it all are those of Tail.
func TestGapsAreLinesAndTailAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := inMemory(t)
		there := make([]byte, 40) // 0 is missing
		for range rapid.IntRange(0, 5).Draw(t, "writes") {
			from := rapid.IntRange(0, 39).Draw(t, "from")
			to := rapid.IntRange(from, 40).Draw(t, "to")
			for i := from; i < to; i++ {
				there[i] = "x\ny"[i%3]
			}
			put(t, a, key, int64(from), string(there[from:to]))
		}
		want := model(bytes.TrimRight(there, "\x00"))
		if got := read(t, a, key, 0); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
		n := rapid.IntRange(0, 12).Draw(t, "lines")
		got, err := a.Tail(t.Context(), key, n)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(want, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if want := strings.Join(lines[max(0, len(lines)-n):], ""); string(got) != want {
			t.Errorf("the last %d lines are %q, want %q", n, got, want)
		}
	})
}

// model is ReadLog in the simplest form: byte by byte.
func model(there []byte) string {
	var b strings.Builder
	for i := 0; i < len(there); i++ {
		if there[i] != 0 {
			b.WriteByte(there[i])
			continue
		}
		from := i
		for there[i+1] == 0 {
			i++
		}
		if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(Chunk{From: int64(from), To: int64(i + 1)}.Note())
	}
	return b.String()
}

func TestLogsListsEachNodeOfEachAttempt(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	put(t, a, LogKey{Job: 1, Task: 0, Attempt: 10}, 0, "abc")
	put(t, a, LogKey{Job: 1, Task: 0, Attempt: 2, Node: 1}, 5, "abc")
	put(t, a, LogKey{Job: 1, Task: 0, Attempt: 2}, 0, "abc")
	put(t, a, LogKey{Job: 1, Task: 0, Attempt: 2}, 3, "de")
	put(t, a, LogKey{Job: 11}, 0, "another job")
	// What is not a segment is not shown, wherever it comes from.
	if err := os.WriteFile(filepath.Join(dir, "logs/1/0/2/0/0000000000000005-0000000000000009.zst123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := a.Logs(t.Context(), &job.Head{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []LogInfo{
		{LogKey: LogKey{Job: 1, Attempt: 2}, Size: 5},
		{LogKey: LogKey{Job: 1, Attempt: 2, Node: 1}, Size: 8, Missing: 5},
		{LogKey: LogKey{Job: 1, Attempt: 10}, Size: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := a.RemoveLogs(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[job.ID]int{1: 0, 11: 1} {
		if got, err := a.Logs(t.Context(), &job.Head{ID: id}); err != nil || len(got) != want {
			t.Errorf("after the removal job %d has %v (%v)", id, got, err)
		}
	}
}

// Two jobs that ever had one id have each their own log: neither is read, or written, into the other.
func TestLogsOfJobsWithOneID(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	old, lost, ours := job.Head{ID: 7}, job.Head{ID: 7, Nonce: "5f1e0c77a9d2"}, job.Head{ID: 7, Nonce: "a4c90b12ffe3"}
	for text, h := range map[string]*job.Head{"from before\n": &old, "lost\n": &lost, "ours\n": &ours} {
		put(t, a, LogOf(h, 0, 1), 0, text)
		put(t, a, LogOf(h, 0, 1), 0, text)
	}
	for text, h := range map[string]*job.Head{"from before\n": &old, "lost\n": &lost, "ours\n": &ours} {
		if got := read(t, a, LogOf(h, 0, 1), 0); got != text {
			t.Errorf("the log of %+v is %q", h, got)
		}
		if infos, err := a.Logs(t.Context(), h); err != nil || len(infos) != 1 || infos[0].LogKey != LogOf(h, 0, 1) {
			t.Errorf("the logs of %+v are %+v (%v)", h, infos, err)
		}
	}
	if err := a.RemoveLogs(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if n, err := a.LogBytes(t.Context(), 7); n != 0 || err != nil {
		t.Errorf("%d bytes are left (%v)", n, err)
	}
}

// Writing a growing tail again and again keeps one object, and a late, shorter write takes nothing away.
func TestGrowingWritesKeepOneObject(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	for _, text := range []string{"a", "ab", "ab", "abcd", "abcd", ""} {
		put(t, a, key, 0, text)
	}
	if got, want := files(t, dir), []string{"logs/7/1/2/3/0000000000000000-0000000000000004.zst"}; !cmp.Equal(got, want) {
		t.Errorf("the archive holds %v, want %v", got, want)
	}
	put(t, a, key, 0, "ab")
	if got := read(t, a, key, 0); got != "abcd" {
		t.Errorf("read %q", got)
	}
}

// A reader whose segment is replaced by a longer one in the meantime goes on with that one.
func TestReadingGoesOnWhenASegmentIsReplaced(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	put(t, a, key, 0, "one\n")
	put(t, a, key, 4, "two\n")
	r, err := a.ReadLog(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 4)
	if _, err := io.ReadFull(r, first); err != nil {
		t.Fatal(err)
	}
	put(t, a, key, 4, "two\nthree\n")
	rest, err := io.ReadAll(r)
	if err != nil || string(rest) != "two\nthree\n" {
		t.Errorf("read %q, %v", rest, err)
	}
}

func TestADamagedSegmentIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	put(t, a, key, 0, "four")
	good, bad := key.object(segment{from: 0, to: 4}), key.object(segment{from: 0, to: 9})
	if err := os.Rename(filepath.Join(dir, good), filepath.Join(dir, bad)); err != nil {
		t.Fatal(err)
	}
	r, err := a.ReadLog(t.Context(), key, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("got %v, want an error with %s", err, bad)
	}
}

func TestOutOfBounds(t *testing.T) {
	t.Parallel()
	a := inMemory(t)
	if err := a.PutLog(t.Context(), key, -1, []byte("x")); err == nil {
		t.Error("a negative offset was stored")
	}
	if err := a.PutLog(t.Context(), key, 0, make([]byte, maxSegment+1)); err == nil {
		t.Error("a segment was stored that is too large to be read")
	}
	for _, from := range []int64{maxLog, 1<<63 - 1} { // a machine may say that its log is so long
		if a.PutLog(t.Context(), key, from, []byte("x")) == nil || a.DropLog(t.Context(), key, 0, from+1) == nil {
			t.Errorf("a part of a log was stored behind %d, where nobody finds it", from)
		}
	}
	if _, err := a.ReadLog(t.Context(), key, -1); err == nil {
		t.Error("a negative position was read")
	}
	if got, err := a.Tail(t.Context(), key, 5); len(got) != 0 || err != nil {
		t.Errorf("the tail of nothing is %q, %v", got, err)
	}
}

func TestASegmentThatIsGoneIsNotFound(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	if _, _, err := a.load(t.Context(), key, segment{from: 0, to: 1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
