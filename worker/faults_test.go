package main

import (
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Ensure that a worker which cannot listen where it was told to says so and ends, and harms neither the other worker nor the
// deployment.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	f.worker()
	w := f.worker("--http", l.Addr().String())
	if !w.ended() || w.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(w.log.String(), "address already in use") ||
		!strings.Contains(w.log.String(), l.Addr().String()) || !strings.Contains(w.log.String(), "--http") {
		t.Errorf("the worker says:\n%s", w.log)
	}
	f.await(f.launch("true"), "SUCCEEDED")
}

// Ensure that a worker which may not write into its home says so and ends, before it has written anything to Redis.
func TestHomeIsNotOurs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	binary := copied(t)
	home := filepath.Join(filepath.Dir(binary), "home")
	if err := os.Mkdir(home, 0o500); err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(home, "deeper")
	cmd := f.command(append(quick[:len(quick):len(quick)], "--home", home)...)
	cmd.Env = append(cmd.Env, "XDG_CONFIG_HOME=/nowhere")
	if os.Getuid() == 0 { // to whom nothing is forbidden
		cmd.Path = binary
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Dir = "/"
	}
	w := f.start(cmd)
	if !w.ended() || w.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(w.log.String(), home) || !strings.Contains(w.log.String(), "permission denied") {
		t.Errorf("the worker says:\n%s", w.log)
	}
	if keys, err := f.admin.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("Redis holds %v, %v", keys, err)
	}
}

// copied is the worker's binary where everybody may run it.
func copied(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "outlast-all")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	path := filepath.Join(dir, "worker")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// small mounts a file system of a few megabytes, or skips the test where that is not allowed.
func small(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "small")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no file system to fill: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return dir
}

// fill writes a file until nothing more goes in, and returns what takes it away.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "fill")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	_ = file.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that an archive whose disk is full fails no job: a submission that needs the archive is refused with the reason,
// what a job prints can be read from Redis meanwhile, and if the disk stays full for longer than the log's end is waited
// for, the job keeps its ending and says what is missing (G5, G10, G11).
func TestG10_ArchiveDiskFull(t *testing.T) {
	t.Parallel()
	dir := small(t, "2m")
	f := newFleet(t)
	archive := (&url.URL{Scheme: "file", Path: dir}).String()
	f.worker("--archive", archive)
	id := f.launch(`echo before; ` + waits)
	f.trace("runs")
	empty := fill(t, dir)
	work := t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a"), []byte(strings.Repeat("random ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.enqueue("launch", "-d", "-w", work, "--", "true"); r.code != 1 || !strings.Contains(r.errs, "no space left on device") {
		t.Errorf("a submission with a workdir: %+v", r)
	}
	f.leave("go")
	f.eventually("the archive's trouble to be told", func() bool {
		_, text := f.show(id)
		return strings.Contains(text, "archive_failed") && strings.Contains(text, "no space left on device")
	}, func() string { return f.enqueue("show", id).out })
	if r := f.enqueue("logs", id); !strings.Contains(r.out, "before\n") || !strings.Contains(r.out, "through\n") {
		t.Errorf("the log meanwhile: %+v", r)
	}
	empty()
	f.await(id, "SUCCEEDED")
	next := f.launch("echo whole")
	f.await(next, "SUCCEEDED")
	if r := f.enqueue("logs", next); r.out != "whole\n" {
		t.Errorf("the log of the next job: %+v", r)
	}
}

// Ensure that a home whose disk is full gives no verdict on a job: no machine can be made there, the job waits and says
// why, and runs when there is room (G10).
func TestG10_HomeDiskFull(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	dir := small(t, "8m")
	f.home = filepath.Join(dir, "home")
	if err := os.Mkdir(f.home, 0o700); err != nil {
		t.Fatal(err)
	}
	f.worker()
	f.await(f.launch("true"), "SUCCEEDED") // all that is made once is there
	empty := fill(t, dir)
	id := f.launch("true")
	f.eventually("the job to say what it waits for", func() bool {
		_, text := f.show(id)
		return strings.Contains(text, "no space left on device")
	}, func() string { return f.enqueue("show", id).out })
	if a, text := f.show(id); a.Status != "STARTING" && a.Status != "PENDING" {
		t.Errorf("the job is %s", text)
	}
	empty()
	f.await(id, "SUCCEEDED")
}

// Ensure that workers of different versions with the same schema serve one deployment together, that both versions are
// told, and that either may be the last one left.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	other, err := build("worker-other", ".", "-ldflags", "-X github.com/outlast-dev/outlast/internal/version.version=v0.0.1-other")
	if err != nil {
		t.Fatal(err)
	}
	old := f.worker("--worker", "old")
	cmd := exec.Command(other, append(quick[:len(quick):len(quick)], "--worker", "new")...)
	cmd.Env, cmd.Dir = f.environ(), f.home
	f.start(cmd)
	id := f.launch(waits)
	f.trace("runs")
	f.eventually("both to be listed with their versions", func() bool {
		r := f.enqueue("workers", "-o", "json")
		return strings.Contains(r.out, "v0.0.1-other") && strings.Count(r.out, `"state":"ready"`) == 2
	}, func() string { return f.enqueue("workers", "-o", "json").out })
	old.kill9()
	f.leave("go")
	if a := f.await(id, "SUCCEEDED"); a.Tasks[0].Attempts != 1 {
		t.Errorf("the job changed its machine: %+v", a)
	}
}
