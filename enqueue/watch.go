package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	usualWatch = 2 * time.Second
	leastWatch = 100 * time.Millisecond // a look at many jobs is no small thing for Redis
)

// watchQueue lists jobs again and again until it is interrupted: in place on a terminal, below each other elsewhere. A
// store that does not answer is a pause.
func (a *app) watchQueue(ctx context.Context, d *deployment, q queueQuery, every time.Duration) error {
	w := &watcher{app: a, out: a.out}
	if a.terminal {
		defer fmt.Fprintln(a.errs) // the shell goes on below the ^C
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		l, err := d.list(ctx, q)
		switch {
		case ctx.Err() != nil:
			return errInterrupted
		case errors.Is(err, store.ErrUnavailable) && w.shown:
			a.say("%s", render.Text(err.Error()+"; trying again"))
			w.lines = 0 // what was said stays
		case err != nil:
			return err
		default:
			if err := w.show(l); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-tick.C:
		}
	}
}

// watcher shows one listing after another.
type watcher struct {
	app   *app
	out   io.Writer
	shown bool
	lines int // of the last listing, on a terminal
}

func (w *watcher) show(l listing) error {
	a := w.app
	defer func() { w.shown = true }()
	if a.structured() {
		if a.flags.output == formYAML && w.shown {
			fmt.Fprintln(w.out, "---")
		}
		return a.encode(w.out, l.jobs)
	}
	a.screen = screenOf(w.out, os.LookupEnv) // somebody may have drawn the window wider
	var page bytes.Buffer
	errs := a.errs
	if a.out = &page; a.terminal { // a remark beside the page would stand in its way
		a.errs = &page
	}
	err := a.queueTable(l)
	a.out, a.errs = w.out, errs
	if err != nil {
		return err
	}
	for _, bad := range l.bad {
		fmt.Fprintln(&page, render.Text(bad.Error()))
	}
	return w.draw(page.String(), l.now)
}

// draw puts a page where the last one was, or under the time in a pipe.
func (w *watcher) draw(page string, now job.Time) error {
	if !w.app.terminal {
		stamp := now.Std().Local().Format(time.RFC3339)
		if w.shown {
			stamp = "\n" + stamp
		}
		_, err := fmt.Fprintf(w.out, "%s\n%s", stamp, page)
		return err
	}
	lines := strings.SplitAfter(page, "\n")
	lines = lines[:len(lines)-1]
	if most := w.app.screen.height - 1; most > 1 && len(lines) > most { // a page that scrolls cannot be drawn over
		left := len(lines) - most + 1
		lines = append(lines[:most-1], w.app.onOut.dim(fmt.Sprintf("... and %d more", left))+"\n")
	}
	back := ""
	if w.lines > 0 {
		back = fmt.Sprintf("\x1b[%dA\x1b[J", w.lines)
	}
	w.lines = len(lines)
	_, err := io.WriteString(w.out, back+strings.Join(lines, ""))
	return err
}
