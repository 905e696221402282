package agent

import (
	"fmt"
	"os"
)

// logCap keeps a log within its limit. One process does so at a time: the supervisor, or after its death whoever polls.
type logCap struct {
	dir   dir
	limit int64 // 0 is none
	punch func(f *os.File, from, to int64) error
}

func newLogCap(d dir, limit int64) logCap { return logCap{dir: d, limit: limit, punch: punch} }

// apply drops what is too much, and returns the size of the log.
//
// The record comes first: a reader who finds that it has changed while he read does not trust what he has read.
func (c logCap) apply() (int64, error) {
	f, err := os.OpenFile(c.dir.path(fileLog), os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("look at the log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("look at the log: %w", err)
	}
	was := c.dir.gap()
	if was.Cutting > 0 { // whoever cut was killed
		return was.To, c.cut(f, was)
	}
	size := was.size(info.Size())
	next, more := was.grown(size, c.limit)
	if !more {
		return size, nil
	}
	if next.Shift == 0 {
		err := c.drop(f, was, next)
		if err == nil || !cannotPunch(err) {
			return size, err
		}
	}
	cut := gap{From: next.From, To: size, Shift: size - next.From, Cutting: info.Size()}
	return size, c.cut(f, cut)
}

// drop makes the gap larger within the file.
func (c logCap) drop(f *os.File, was, next gap) error {
	if err := c.dir.setGap(next); err != nil {
		return err
	}
	err := c.punch(f, max(was.To, next.From), next.To)
	if err != nil {
		if back := c.dir.setGap(was); back != nil { // what was to go is still there
			return back
		}
		return fmt.Errorf("drop a part of the log: %w", err)
	}
	return nil
}

// cut cuts the file off where the gap begins. What is written between the look at the length and the cut is lost and not
// counted, so that this is for file systems that cannot do better.
func (c logCap) cut(f *os.File, g gap) error {
	if err := c.dir.setGap(g); err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() >= g.Cutting { // else it was cut already
		err = f.Truncate(g.From)
	}
	if err != nil {
		return fmt.Errorf("cut off the log: %w", err)
	}
	g.Cutting = 0
	return c.dir.setGap(g)
}

// capUnsupervised keeps the log of a run within its limit that has lost its supervisor. Somebody else who does it just
// now is enough.
func (d dir) capUnsupervised(limit int64) error {
	lock, err := tryLock(d.path(fileLogLock))
	if err != nil || lock == nil {
		return err
	}
	defer lock.Close()
	_, err = newLogCap(d, limit).apply()
	return err
}
