package tasks

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/job"
)

// chatty is a job whose code has printed a log, and the look at it.
func (b *bench) chatty(a *archive.Archive, state agent.State, text *[]byte) *driver {
	b.Helper()
	w := b.worker(func(c *Config) {
		c.Archive, c.Sites = a, Sites{"far": site(&rented{name: "far"}, printed(state, text))}
	})
	return b.begun(w, b.submit(1)[0], job.PhaseStarted)
}

// look probes, and remembers how far the log has come.
func (b *bench) look(d *driver) {
	b.Helper()
	p, err := d.probe(b.Context(), d.w.sites["far"], &d.job.Live[0])
	if err != nil || p.Fault != nil {
		b.Fatalf("probe: %+v, %v", p, err)
	}
	d.job.Look.Tail, d.job.Look.Kept = p.Tail, p.Kept
}

// archived is how much of a log is in the archive.
func (b *bench) archived(d *driver) archive.LogInfo {
	b.Helper()
	info, err := d.w.archive.LogSize(b.Context(), archive.LogOf(&d.job.Head, 0, 1))
	if err != nil {
		b.Fatal(err)
	}
	return info
}

// Ensure that an archive which was away while the code printed more than a tail holds gets all of it afterwards, while the
// code still runs: the machine may be lost before anybody can ask it again (G11).
//
// skypilot #10410: logs were said to be in the external store, and never came there.
func TestG11_ArchiveCatchesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, dir := b.files()
	text := []byte(strings.Repeat("0123456789abcde\n", 1<<16)) // 1 MiB, four times a tail
	d := b.chatty(files, agent.Running, &text)
	heal := b.block(dir, "logs")
	for d.job.Look.Tail < int64(len(text)) {
		b.look(d)
	}
	heal()
	text = append(text, strings.Repeat("more\n", keepBytes/4)...)
	for range 3 {
		b.look(d)
	}
	if got := b.archived(d); got.Missing != 0 || got.Size <= int64(len(text))-keepBytes {
		t.Errorf("have %d bytes, of which %d are missing, want nearly all of %d", got.Size, got.Missing, len(text))
	}
}

// Ensure that the end of a log which takes longer than one act may is brought in by several, each going on where the one
// before was cut off, and that the store is not blamed for it: that would be repeated for ever, with the machine (G4, G11).
func TestG11_LongLogIsSavedInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, _ := b.files()
	text := []byte(strings.Repeat("0123456789abcde\n", 1<<18)) // 4 MiB
	d := b.chatty(files, agent.Exited, &text)
	d.job.Live[0].Exit = &job.Exit{Stage: "run"}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	quick, slow := d.w.sites["far"].Dialer, 0
	d.w.sites["far"].Dialer = node(func(ctx context.Context, args []string) (agent.Status, error) {
		if slow++; slow == 5 { // the first question is whether it is there
			done() // the time of the act is up
			return hangs(ctx, args)
		}
		return quick.(node)(ctx, args)
	})
	out, err := d.save(ctx, d.w.sites["far"], &d.job.Live[0])
	if err != nil || out.Fault == nil || out.Fault.Class != job.Transient {
		t.Fatalf("have %+v, %v, want a transient fault", out, err)
	}
	part := b.archived(d)
	if part.Size == 0 {
		t.Fatal("nothing was kept of what was read")
	}
	first := int64(-1)
	d.w.sites["far"].Dialer = node(func(ctx context.Context, args []string) (agent.Status, error) {
		if at, _ := strconv.ParseInt(args[2], 10, 64); first < 0 {
			first = at
		}
		return quick.(node)(ctx, args)
	})
	if out, err := d.save(t.Context(), d.w.sites["far"], &d.job.Live[0]); err != nil || out.Fault != nil {
		t.Fatalf("have %+v, %v", out, err)
	}
	if first != part.Size {
		t.Errorf("went on at %d, want %d", first, part.Size)
	}
	if got := b.archived(d); got.Missing != 0 || got.Size != int64(len(text)) {
		t.Errorf("have %d bytes, of which %d are missing, want all of %d", got.Size, got.Missing, len(text))
	}
}

// Ensure that an answer of the agent counts also if the time of the look ran out over the log that came with it: a job that
// has ended must be seen to have ended (G1).
func TestAnswerCountsWithoutItsLog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, _ := b.files()
	text := []byte("the last words\n")
	d := b.chatty(files, agent.Exited, &text)
	quick := d.w.sites["far"].Dialer.(node)
	d.w.sites["far"].Dialer = node(func(ctx context.Context, args []string) (agent.Status, error) {
		<-ctx.Done() // it answers at the last moment
		st, err := quick(ctx, args)
		st.Exit = &agent.Exit{Stage: "run"}
		return st, err
	})
	ctx, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer done()
	p, err := d.probe(ctx, d.w.sites["far"], &d.job.Live[0])
	if err != nil || p.Fault != nil || p.State != job.RunExited || p.Tail != 0 {
		t.Errorf("have %+v, %v", p, err)
	}
}

// Ensure that an archive which is away at the start of the user's code is a pause, and only the answer that there is no
// such bundle ends the task (G10).
//
// skypilot #10091: a download of logs that failed took the job with it.
func TestG10_ArchiveAwayAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	files, dir := b.files()
	far := &rented{name: "far"}
	w := b.worker(func(c *Config) {
		c.Archive, c.Sites = files, Sites{"far": site(far, hangs)}
	})
	id := b.submit(1, func(t *job.TaskRequest) { t.Workdir = "bundles/" + strings.Repeat("0", 64) + ".tar.gz" })[0]
	d := b.begun(w, id, job.PhaseReady)
	start := func() job.Class {
		t.Helper()
		p, err := d.start(t.Context(), w.sites["far"], &d.job.Live[0])
		if err != nil || p.Fault == nil {
			t.Fatalf("have %+v, %v, want a fault", p, err)
		}
		return p.Fault.Class
	}
	heal := b.block(dir, "bundles")
	if class := start(); class.Permanent() {
		t.Errorf("an archive that is away is %s", class)
	}
	heal()
	if class := start(); class != job.Invalid {
		t.Errorf("a bundle that does not exist is %s", class)
	}
}
