package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/archive"
	"github.com/outlast-dev/outlast/internal/follow"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// syncDown writes all that is known of a job into a new folder below another one, and prints its path:
//
//	job-7/job.json                       as show -o json
//	job-7/events.json                    as events -o json, in a list
//	job-7/controller.log                 as logs --controller
//	job-7/task-0-NAME/attempt-1/run.log  the output, as logs prints it into a pipe
//	job-7/logs-removed.txt               if the output was removed: when and why
func (a *app) syncDown(ctx context.Context, d *deployment, id job.ID, below string) error {
	h, _, err := d.history(ctx, id)
	if err != nil {
		return err
	}
	keys, err := d.logKeys(ctx, id)
	if err != nil {
		return err
	}
	folder, err := newFolder(below, fmt.Sprintf("job-%d", id))
	if err != nil {
		return err
	}
	err = errors.Join(
		writeFile(filepath.Join(folder, "job.json"), func(w io.Writer) error { return render.JSON(w, h) }),
		a.writeEvents(ctx, d, id, filepath.Join(folder, "events.json")),
		writeFile(filepath.Join(folder, "controller.log"), func(w io.Writer) error { return d.writeJournal(ctx, id, w) }),
	)
	if err == nil && len(keys) == 0 {
		err = d.writeRemoved(ctx, id, filepath.Join(folder, "logs-removed.txt"))
	}
	for _, key := range keys {
		if err != nil {
			break
		}
		name := ""
		if key.Task < len(h.Tasks) {
			name = h.Tasks[key.Task].Name
		}
		err = d.writeLog(ctx, key, filepath.Join(folder, taskFolder(key.Task, name), fmt.Sprintf("attempt-%d", key.Attempt)))
	}
	if err != nil {
		return fmt.Errorf("download into %s: %w", folder, err)
	}
	return a.print(map[string]any{"job": id, "folder": folder}, func() error {
		_, err := fmt.Fprintln(a.out, folder)
		return err
	})
}

// newFolder makes a folder that was not there: name, name-2, name-3 and so on. Nothing is ever written over.
func newFolder(below, name string) (string, error) {
	if err := os.MkdirAll(below, 0o755); err != nil {
		return "", fmt.Errorf("make the folder: %w", err)
	}
	const most = 10_000
	for n := 1; n <= most; n++ {
		folder := filepath.Join(below, name)
		if n > 1 {
			folder += fmt.Sprintf("-%d", n)
		}
		err := os.Mkdir(folder, 0o755)
		if err == nil {
			return folder, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make the folder: %w", err)
		}
	}
	return "", fmt.Errorf("make the folder: %s and %d others are there already", filepath.Join(below, name), most-1)
}

// taskFolder is a folder's name for a task. Of the task's name only what is harmless in a path is taken.
func taskFolder(task int, name string) string {
	const most = 40
	name = strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, name), "-.")
	if name = name[:min(len(name), most)]; name == "" {
		return fmt.Sprintf("task-%d", task)
	}
	return fmt.Sprintf("task-%d-%s", task, name)
}

// logKeys lists the attempts that have output: in the archive, or still only in a live tail.
func (d *deployment) logKeys(ctx context.Context, id job.ID) ([]archive.LogKey, error) {
	files, err := d.archive(ctx)
	if err != nil {
		return nil, err
	}
	r, err := d.jobs.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	infos, err := files.Logs(ctx, &r.Head)
	if err != nil {
		return nil, err
	}
	var keys []archive.LogKey
	for _, info := range infos {
		keys = append(keys, info.LogKey)
	}
	for _, live := range r.Live {
		if key := archive.LogOf(&r.Head, live.Task, live.Number); !slices.Contains(keys, key) && !live.StartedAt.IsZero() {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(x, y archive.LogKey) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Attempt, y.Attempt), cmp.Compare(x.Node, y.Node))
	})
	return keys, nil
}

// writeLog writes the output of one attempt.
func (d *deployment) writeLog(ctx context.Context, key archive.LogKey, folder string) error {
	name := "run.log"
	if key.Node > 0 {
		name = fmt.Sprintf("run-%d.log", key.Node)
	}
	files, err := d.archive(ctx)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, name), func(w io.Writer) error {
		return (&follow.Log{Store: d.jobs, Archive: files, Key: key}).Rest(ctx, &follow.Printer{W: w})
	})
}

// writeRemoved says why the output of a job is not there any more, if it was removed.
func (d *deployment) writeRemoved(ctx context.Context, id job.ID, path string) error {
	var text bytes.Buffer
	if err := d.tellRemoved(ctx, id, &follow.Printer{W: &text}); err != nil || text.Len() == 0 {
		return err
	}
	return writeFile(path, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
}

func (a *app) writeEvents(ctx context.Context, d *deployment, id job.ID, path string) error {
	events, err := d.jobs.Events(ctx, id)
	if err != nil {
		return err
	}
	shapes := make([]any, len(events))
	for i, e := range events {
		shapes[i] = account.EventOf(e)
	}
	return writeFile(path, func(w io.Writer) error { return render.JSON(w, shapes) })
}

func (d *deployment) writeJournal(ctx context.Context, id job.ID, w io.Writer) error {
	text, err := d.journal(ctx, id)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		if _, err := fmt.Fprintln(w, journalText(line)); err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes a new file and its folder.
func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
