package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// journal reads what workers have logged about a job: from Redis, or from the archive when it is not there any more.
func (d *deployment) journal(ctx context.Context, id job.ID) ([]byte, error) {
	text, err := d.store.Journal(ctx, id)
	if err != nil || len(text) > 0 {
		return text, err
	}
	files, err := d.archive(ctx)
	if err != nil {
		return nil, err
	}
	return files.Journal(ctx, id)
}

// showJournal prints what workers have logged about a job.
func (a *app) showJournal(ctx context.Context, d *deployment, id job.ID) error {
	if _, err := d.jobs.Load(ctx, id); err != nil {
		return err
	}
	text, err := d.journal(ctx, id)
	if err != nil {
		return err
	}
	if len(text) == 0 {
		a.say("no worker has kept anything about job %d", id)
	}
	for line := range bytes.Lines(text) {
		if a.structured() {
			_, err = a.out.Write(line)
		} else {
			_, err = fmt.Fprintln(a.out, journalText(line))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// journalText is a line of a journal for people: time, worker, level, what it says, and what else it holds, by name. A line
// that was cut off is shown as it is.
func journalText(line []byte) string {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil {
		return render.Text(strings.TrimSpace(string(line)))
	}
	take := func(name string) string {
		v, ok := fields[name]
		delete(fields, name)
		if !ok {
			return "-"
		}
		return render.Text(fmt.Sprint(v))
	}
	delete(fields, "job")
	var text strings.Builder
	fmt.Fprintf(&text, "%s  %s  %-5s  %s", take("time"), take("worker"), take("level"), take("message"))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text.WriteString("  " + render.Text(name) + "=" + take(name))
	}
	return text.String()
}
