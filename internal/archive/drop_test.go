package archive

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// What was dropped is said, counted apart from what is missing, and takes no room; a gap that grows leaves one object.
func TestDropLog(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	put(t, a, key, 0, "head\n")
	put(t, a, key, 5, "one\n")
	put(t, a, key, 9, "two\n")
	put(t, a, key, 20, "tail\n")
	for _, to := range []int64{9, 12, 20} {
		if err := a.DropLog(t.Context(), key, 5, to); err != nil {
			t.Fatal(err)
		}
	}
	want := "head\n[outlast: 15 bytes were dropped here, the log is longer than its limit]\ntail\n"
	if got := read(t, a, key, 0); got != want {
		t.Errorf("read %q, want %q", got, want)
	}
	if got := read(t, a, key, 7); got != "[outlast: 13 bytes were dropped here, the log is longer than its limit]\ntail\n" {
		t.Errorf("read %q", got)
	}
	info, err := a.LogSize(t.Context(), key)
	if diff := cmp.Diff(LogInfo{LogKey: key, Size: 25, Dropped: 15}, info); diff != "" || err != nil {
		t.Errorf("error %v, info (-want +got):\n%s", err, diff)
	}
	if got := files(t, dir); len(got) != 3 {
		t.Errorf("the archive holds %v", got)
	}
	if err := a.DropLog(t.Context(), key, 3, 3); err == nil {
		t.Error("nothing was dropped")
	}
}

// Of what no segment has, what was dropped and what is missing are told apart, byte by byte.
func TestStitchTellsDroppedFromMissing(t *testing.T) {
	t.Parallel()
	got := stitch([]segment{{from: 0, to: 2}, {from: 3, to: 5, dropped: true}, {from: 4, to: 7, dropped: true}, {from: 6, to: 8},
		{from: 8, to: 9, dropped: true}}, 1)
	want := []piece{
		{from: 1, to: 2, segment: segment{from: 0, to: 2}},
		{from: 2, to: 3, is: isMissing}, {from: 3, to: 6, is: isDropped},
		{from: 6, to: 8, segment: segment{from: 6, to: 8}},
		{from: 8, to: 9, is: isDropped},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(piece{}, segment{})); diff != "" {
		t.Errorf("pieces (-want +got):\n%s", diff)
	}
}

// The marks of a log are read with its bytes, and whoever has only zstd reads the bytes alone.
func TestMarksTravelWithTheirBytes(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	marks := []job.Mark{{Offset: 0, Kind: job.MarkSetup, Value: 1000}, {Offset: 4, Kind: job.MarkTime, Value: 2000}}
	if err := a.PutLog(context.Background(), key, 0, []byte("one\n"), marks...); err != nil {
		t.Fatal(err)
	}
	put(t, a, key, 4, "two\n")
	var text string
	var got []job.Mark
	for c, err := range a.Chunks(t.Context(), key, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text += string(c.Data)
		got = append(got, c.Marks...)
	}
	if diff := cmp.Diff(marks, got); diff != "" || text != "one\ntwo\n" {
		t.Errorf("read %q, marks (-want +got):\n%s", text, diff)
	}
	if _, err := exec.LookPath("zstd"); err != nil {
		t.Skip("no zstd to compare with")
	}
	f, err := os.Open(filepath.Join(dir, key.object(segment{from: 0, to: 4})))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("zstd", "-dc")
	cmd.Stdin = f
	if out, err := cmd.Output(); err != nil || string(out) != "one\n" {
		t.Errorf("zstd reads %q, %v", out, err)
	}
}

// Garbage where the marks would be is no panic and no marks.
func TestMarksOfGarbage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "short", "\x5e\x2a\x4d\x18\xff\xff\xff\xff", "not a frame at all"} {
		if got := unpackMarks([]byte(text)); got != nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Who reads a log while another one replaces and drops parts of it is not told of objects that went away meanwhile.
func TestListsWhileObjectsGoAway(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for at := int64(0); err == nil && ctx.Err() == nil; at++ {
			err = errors.Join(a.PutLog(context.Background(), key, at, []byte("x")), a.DropLog(context.Background(), key, 0, max(at-3, 1)))
		}
		done <- err
	}()
	for range 200 {
		if _, err := a.LogSize(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
