package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gocloud.dev/blob"

	"github.com/outlast-dev/outlast/internal/job"
)

// LogInfo says how much of a log is there.
type LogInfo struct {
	LogKey
	Size    int64 `json:"size"`              // where it ends, in bytes
	Missing int64 `json:"missing,omitempty"` // bytes before the end that are not there
	Dropped int64 `json:"dropped,omitempty"` // bytes before the end that are not there on purpose
}

// PutLog stores data as the bytes of a log from offset on. Writing the same bytes again, fewer or more of them, in any order
// and from several workers, is fine: nothing that is stored is ever lost by it. No data is no write. The marks are those of
// the data.
func (a *Archive) PutLog(ctx context.Context, key LogKey, offset int64, data []byte, marks ...job.Mark) error {
	switch {
	case len(data) == 0:
		return nil
	case offset < 0 || len(data) > maxSegment || offset > maxLog-int64(len(data)):
		return fmt.Errorf("archive %s: store %d bytes of the log of %s from %d: out of bounds", a.name, len(data), key, offset)
	}
	s := segment{from: offset, to: offset + int64(len(data))}
	packed := a.codec.enc.EncodeAll(data, packMarks(marks))
	err := a.put(ctx, key.object(s), "application/zstd", func(w *blob.Writer) error {
		_, err := w.Write(packed)
		return err
	})
	if err != nil {
		return err
	}
	return a.removeCovered(ctx, key, s)
}

// removeCovered deletes the segments that start where s does and hold less, so that a log that is written again and
// again from one position does not take the square of its size. Failing halfway leaves nothing but waste.
func (a *Archive) removeCovered(ctx context.Context, key LogKey, s segment) error {
	return a.list(ctx, fmt.Sprintf("%s%016d-", key.prefix(), s.from), func(_ LogKey, other segment) error {
		if !other.dropped && other.to < s.to {
			return a.remove(ctx, key.object(other))
		}
		return nil
	})
}

// DropLog notes that the bytes from..to of a log were dropped because it is too long, and deletes the segments that hold
// nothing else. It may be repeated, also with more.
func (a *Archive) DropLog(ctx context.Context, key LogKey, from, to int64) error {
	if from < 0 || to <= from || to > maxLog {
		return fmt.Errorf("archive %s: drop the bytes %d to %d of the log of %s: out of bounds", a.name, from, to, key)
	}
	gap := segment{from: from, to: to, dropped: true}
	if err := a.put(ctx, key.object(gap), "text/plain", func(*blob.Writer) error { return nil }); err != nil {
		return err
	}
	return a.list(ctx, key.prefix(), func(_ LogKey, s segment) error {
		if s != gap && s.from >= from && s.to <= to {
			return a.remove(ctx, key.object(s))
		}
		return nil
	})
}

// Logs lists the logs of a job in order of task, attempt and node.
func (a *Archive) Logs(ctx context.Context, h *job.Head) ([]LogInfo, error) {
	segments := map[LogKey][]segment{}
	err := a.list(ctx, prefixOfJob(h.ID)+prefixOfNonce(h.Nonce), func(k LogKey, s segment) error {
		if k.Nonce == h.Nonce {
			segments[k] = append(segments[k], s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	infos := make([]LogInfo, 0, len(segments))
	for k, of := range segments {
		infos = append(infos, inform(k, of))
	}
	slices.SortFunc(infos, func(x, y LogInfo) int {
		return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Attempt, y.Attempt), cmp.Compare(x.Node, y.Node))
	})
	return infos, nil
}

// LogSize says how much of one log is there. A log without a byte has the size 0.
func (a *Archive) LogSize(ctx context.Context, key LogKey) (LogInfo, error) {
	segments, err := a.segments(ctx, key)
	if err != nil {
		return LogInfo{}, err
	}
	return inform(key, segments), nil
}

// RemoveLogs deletes all logs of a job, those of others that ever had its id, and its journal.
func (a *Archive) RemoveLogs(ctx context.Context, id job.ID) error {
	if err := a.remove(ctx, journalOf(id)); err != nil {
		return err
	}
	return a.list(ctx, prefixOfJob(id), func(k LogKey, s segment) error { return a.remove(ctx, k.object(s)) })
}

func inform(key LogKey, segments []segment) LogInfo {
	info := LogInfo{LogKey: key}
	for _, p := range stitch(segments, 0) {
		info.Size = p.to
		switch p.is {
		case isMissing:
			info.Missing += p.to - p.from
		case isDropped:
			info.Dropped += p.to - p.from
		}
	}
	return info
}

func (a *Archive) segments(ctx context.Context, key LogKey) ([]segment, error) {
	var all []segment
	err := a.list(ctx, key.prefix(), func(_ LogKey, s segment) error {
		all = append(all, s)
		return nil
	})
	return all, err
}

// list calls each for every segment whose name starts with prefix.
func (a *Archive) list(ctx context.Context, prefix string, each func(LogKey, segment) error) error {
	names, err := a.names(ctx, prefix)
	for try := 1; errors.Is(err, ErrNotFound) && try < listTries; try++ {
		names, err = a.names(ctx, prefix)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if k, s, ok := parseObject(name); ok {
			if err := each(k, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// listTries is how often a list is begun again because an object went away while it was listed: a bucket in a directory
// fails then.
const listTries = 10

func (a *Archive) names(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	it := a.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		object, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, a.failed(err, "list %s", prefix)
		}
		names = append(names, object.Key)
	}
}

// load reads a segment with its marks and checks that it holds what its name says.
func (a *Archive) load(ctx context.Context, key LogKey, s segment) ([]byte, []job.Mark, error) {
	name := key.object(s)
	packed, err := a.bucket.ReadAll(ctx, name)
	if err != nil {
		return nil, nil, a.failed(err, "read %s", name)
	}
	data, err := a.codec.dec.DecodeAll(packed, nil)
	if err == nil && int64(len(data)) != s.to-s.from {
		err = fmt.Errorf("it is damaged: it holds %d bytes", len(data))
	}
	if err != nil {
		return nil, nil, a.failed(err, "read %s", name)
	}
	return data, unpackMarks(packed), nil
}
