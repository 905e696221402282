package agent

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Ensure that processes which end and so close the log wake nobody, and that a stop among them does.
func TestClosedLogsAreNotTold(t *testing.T) {
	dir := t.TempDir()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if _, err := syscall.InotifyAddWatch(fd, dir, syscall.IN_MOVED_TO|syscall.IN_CLOSE_WRITE); err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	events := func() []byte {
		t.Helper()
		buf := make([]byte, 4096)
		n, err := syscall.Read(fd, buf)
		if err != nil {
			t.Fatal(err)
		}
		return buf[:n]
	}
	write(fileLog)
	write(fileLog)
	if seen := events(); tells(seen) {
		t.Errorf("a log that was closed is told: %q", seen)
	}
	write(fileLog)
	write("other")
	write(fileLog)
	if seen := events(); !tells(seen) {
		t.Errorf("a file is not told: %q", seen)
	}
	write(fileLog)
	if err := os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "stop.json")); err != nil {
		t.Fatal(err)
	}
	seen := events()
	if !tells(seen) {
		t.Errorf("a stop is not told: %q", seen)
	}
	if !tells(seen[:len(seen)-1]) {
		t.Error("an event without its end is not told")
	}
}
