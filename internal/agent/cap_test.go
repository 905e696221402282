package agent

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"
)

// However a log grows, what is kept stays within the limit, its head is never touched and its gap only ever grows.
func TestGapGrows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(minLogLimit, 1<<30).Draw(t, "limit")
		var g gap
		var size int64
		for _, more := range rapid.SliceOf(rapid.Int64Range(0, 1<<31)).Draw(t, "growth") {
			size += more
			next, changed := g.grown(size, limit)
			if !changed {
				if next != g {
					t.Fatalf("unchanged, but %+v became %+v", g, next)
				}
			} else if next.From != headOf(limit) || next.To <= g.To || next.To > size || next.To-next.From < g.To-g.From {
				t.Fatalf("at %d bytes %+v became %+v", size, g, next)
			}
			if kept := size - (next.To - next.From); kept > limit || changed && kept < limit/2 {
				t.Fatalf("%d of %d bytes are kept, limit %d, %+v", kept, size, limit, next)
			}
			g = next
		}
	})
}

// numbered is a log whose every line says where it is.
func numbered(from, to int64) []byte {
	var b bytes.Buffer
	for n := from / 16; n <= to/16; n++ {
		fmt.Fprintf(&b, "%015d\n", n*16)
	}
	return b.Bytes()[from%16 : from%16+to-from]
}

// printNumbered is a script that prints so many bytes of it.
func printNumbered(bytes int64) string { return fmt.Sprintf("seq -f %%015.0f 0 16 %d", bytes-16) }

// readAll reads a log as a worker does, and checks that each byte is the one that belongs there.
func (n *node) readAll(piece int64) (kept int64, gaps []Gap) {
	n.t.Helper()
	for offset := int64(0); ; {
		st, err := n.command(nil, "poll", string(n.dir), strconv.FormatInt(offset, 10), strconv.FormatInt(piece, 10))
		if err != nil {
			n.t.Fatalf("poll: %v", err)
		}
		if st.LogOffset > offset {
			gaps = append(gaps, Gap{From: offset, To: st.LogOffset})
		}
		end := st.LogOffset + int64(len(st.Log))
		if want := numbered(st.LogOffset, end); !bytes.Equal(st.Log, want) {
			n.t.Fatalf("the log from %d to %d is not what was written there: %.40q instead of %.40q", st.LogOffset, end, st.Log, want)
		}
		kept += int64(len(st.Log))
		if offset = end; offset >= st.LogSize && (over(st.State) || st.State == Unsupervised) {
			return kept, gaps
		}
	}
}

// onDisk is what a file takes of its disk.
func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// A log beyond its limit keeps its head and its tail, each byte at its offset, says what is gone, and takes no more of the
// disk than the limit. The run is not disturbed.
func TestLogIsCapped(t *testing.T) {
	t.Parallel()
	const limit, printed = 256 << 10, 8 << 20
	n := newNode(t)
	st := n.finish(StartRequest{LogLimit: limit, Run: printNumbered(printed)})
	if st.Exit.Code != 0 || st.LogSize != printed || st.LogGap == nil {
		t.Fatalf("%+v", st)
	}
	kept, gaps := n.readAll(50_000)
	if len(gaps) != 1 || gaps[0] != *st.LogGap || gaps[0].From != limit/4 {
		t.Errorf("read the gaps %v, told %v", gaps, *st.LogGap)
	}
	if kept > limit || kept < limit/2 || kept+gaps[0].To-gaps[0].From != printed {
		t.Errorf("kept %d bytes with a limit of %d", kept, limit)
	}
	if got := onDisk(t, n.dir.path(fileLog)); got > limit+gapAlign {
		t.Errorf("%d bytes on disk with a limit of %d", got, limit)
	}
}

// Who reads while a fast writer makes the gap larger sees no byte that is not the writer's.
func TestReadingWhileTheGapGrows(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.start(StartRequest{LogLimit: minLogLimit, Run: printNumbered(64 << 20)})
	if kept, _ := n.readAll(20_000); kept == 0 {
		t.Error("nothing was read")
	}
}

// A run that has lost its supervisor does not fill the disk either: whoever polls keeps its log short.
func TestCapWithoutASupervisor(t *testing.T) {
	t.Parallel()
	const limit = minLogLimit
	n := newNode(t)
	n.start(StartRequest{LogLimit: limit, Run: "until test -e go; do sleep 0.01; done; " + printNumbered(4<<20) + "; touch done; sleep 1000"})
	sup := n.supervisor()
	sup.signal(syscall.SIGKILL)
	n.awaitState(Unsupervised)
	if err := os.WriteFile(n.dir.path("workdir/go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is printed", func() bool { return n.dir.has("workdir/done") })
	st := n.poll()
	if st.State != Unsupervised || st.LogGap == nil || st.LogSize != 4<<20 {
		t.Fatalf("%+v", st)
	}
	if kept, _ := n.readAll(20_000); kept > limit {
		t.Errorf("kept %d bytes with a limit of %d", kept, limit)
	}
}

// Where a file system cannot give back the middle of a file the log is cut off after its head, and what is written later
// is found behind a gap.
func TestCapByCutting(t *testing.T) {
	t.Parallel()
	const limit = minLogLimit
	d := dir(t.TempDir())
	log, err := os.OpenFile(d.path(fileLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := newLogCap(d, limit)
	c.punch = func(*os.File, int64, int64) error { return syscall.EOPNOTSUPP }
	size := int64(0)
	for range 50 {
		if _, err := log.Write(numbered(size, size+10_000)); err != nil {
			t.Fatal(err)
		}
		size += 10_000
		if got, err := c.apply(); got != size || err != nil {
			t.Fatalf("size %d, want %d, error %v", got, size, err)
		}
		if info, err := log.Stat(); err != nil || info.Size() > limit {
			t.Fatalf("the file has %d bytes, error %v", info.Size(), err)
		}
		var st Status
		offset := int64(0)
		for offset < size {
			if err := d.readLog(&st, offset, 7000); err != nil {
				t.Fatal(err)
			}
			offset = st.LogOffset + int64(len(st.Log))
			if !bytes.Equal(st.Log, numbered(st.LogOffset, offset)) || st.LogSize != size {
				t.Fatalf("wrong bytes at %d of %d", st.LogOffset, st.LogSize)
			}
		}
	}
	g := d.gap()
	if g.Shift == 0 || g.From != headOf(limit) {
		t.Errorf("gap %+v", g)
	}
	g.Cutting = 1 << 20 // as if it had been killed after the cut
	if err := d.setGap(g); err != nil {
		t.Fatal(err)
	}
	if _, err := c.apply(); err != nil || d.gap().Cutting != 0 {
		t.Errorf("gap %+v, error %v", d.gap(), err)
	}
}

// A record of the gap that was torn, or written by the user's code, does no harm.
func TestGapRecordIsNotTrusted(t *testing.T) {
	t.Parallel()
	d := dir(t.TempDir())
	for _, text := range []string{"", "{}", strings.Repeat(" ", 2*gapRoom), strings.Repeat("x", 2*gapRoom),
		strings.Repeat(`{"from":9,"to":1}`+strings.Repeat(" ", gapRoom-17), 2),
		strings.Repeat(`{"from":-9,"to":1}`+strings.Repeat(" ", gapRoom-18), 2),
		strings.Repeat(`{"from":1,"to":2,"shift":9}`+strings.Repeat(" ", gapRoom-27), 2),
	} {
		if err := os.WriteFile(d.path(fileGap), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if g := d.gap(); g != (gap{}) {
			t.Errorf("%.30q: %+v", text, g)
		}
	}
}
