package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The files of a history.
const (
	FileRun    = "history.jsonl"
	FileLedger = "ledger.jsonl"
	FileTraces = "traces.jsonl"
	FileJobs   = "jobs.jsonl"
	FileEnd    = "end.jsonl"
)

// line is a line of any of the files.
type line struct {
	Kind string          `json:"kind"`
	Of   json.RawMessage `json:"of"`
}

// kindOf is the kind of what is written, and the file that it belongs to.
func kindOf(v any) (kind, file string) {
	switch v.(type) {
	case Run:
		return "run", FileRun
	case Worker:
		return "worker", FileRun
	case Submission:
		return "submission", FileRun
	case Cancel:
		return "cancel", FileRun
	case Resume:
		return "resume", FileRun
	case Preemption:
		return "preemption", FileRun
	case Fault:
		return "fault", FileRun
	case Heal:
		return "heal", FileRun
	case Seen:
		return "seen", FileRun
	case Sample:
		return "sample", FileRun
	case Call:
		return "call", FileRun
	case Entry:
		return "entry", FileLedger
	case Trace:
		return "trace", FileTraces
	case Job:
		return "job", FileJobs
	case Machine:
		return "machine", FileEnd
	case Process:
		return "process", FileEnd
	case Searched:
		return "searched", FileEnd
	case Leak:
		return "leak", FileEnd
	default:
		return "", ""
	}
}

// Writer writes a history. Its methods may be called at the same time.
type Writer struct {
	dir   string
	mu    sync.Mutex
	files map[string]*os.File
	err   error // the first
}

// NewWriter writes into a folder that is there.
func NewWriter(dir string) *Writer { return &Writer{dir: dir, files: map[string]*os.File{}} }

// Dir is the folder.
func (w *Writer) Dir() string { return w.dir }

// Add writes a value of one of the types of this package. What goes wrong is told by [Writer.Close].
func (w *Writer) Add(v any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.add(v); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *Writer) add(v any) error {
	kind, file := kindOf(v)
	if kind == "" {
		return fmt.Errorf("a history has no lines for %T", v)
	}
	of, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write a %s: %w", kind, err)
	}
	text, err := json.Marshal(line{kind, of})
	if err != nil {
		return fmt.Errorf("write a %s: %w", kind, err)
	}
	f := w.files[file]
	if f == nil {
		if f, err = os.OpenFile(filepath.Join(w.dir, file), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
			return fmt.Errorf("write a %s: %w", kind, err)
		}
		w.files[file] = f
	}
	if _, err := f.Write(append(text, '\n')); err != nil { // one write a line: a run that dies leaves whole lines
		return fmt.Errorf("write a %s: %w", kind, err)
	}
	return nil
}

// Close ends the writing and tells what went wrong first.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.err
	for _, f := range w.files {
		err = errors.Join(err, f.Close())
	}
	w.files = map[string]*os.File{}
	return err
}

// Read reads a history from its folder. A file that is not there is empty.
func Read(dir string) (History, error) {
	var h History
	heals := map[int]Heal{}
	for _, file := range []string{FileRun, FileLedger, FileTraces, FileJobs, FileEnd} {
		f, err := os.Open(filepath.Join(dir, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return h, fmt.Errorf("read the history: %w", err)
		}
		err = h.read(f, heals)
		if err = errors.Join(err, f.Close()); err != nil {
			return h, fmt.Errorf("read %s: %w", file, err)
		}
	}
	for i := range h.Faults {
		h.Faults[i].Healed = max(h.Faults[i].Healed, heals[h.Faults[i].ID].At)
	}
	h.sort()
	return h, nil
}

func (h *History) read(r io.Reader, heals map[int]Heal) error {
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadString('\n')
		if strings.TrimSpace(text) != "" {
			if err := h.take([]byte(text), heals); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (h *History) take(text []byte, heals map[int]Heal) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	switch l.Kind {
	case "run":
		h.Run = Run{}
		return json.Unmarshal(l.Of, &h.Run)
	case "worker":
		return into(&h.Workers, l.Of)
	case "submission":
		return into(&h.Submissions, l.Of)
	case "cancel":
		return into(&h.Cancels, l.Of)
	case "resume":
		return into(&h.Resumes, l.Of)
	case "preemption":
		return into(&h.Preemptions, l.Of)
	case "fault":
		return into(&h.Faults, l.Of)
	case "heal":
		var one Heal
		err := json.Unmarshal(l.Of, &one)
		heals[one.ID] = one
		return err
	case "seen":
		return into(&h.Seen, l.Of)
	case "sample":
		return into(&h.Samples, l.Of)
	case "call":
		return into(&h.Calls, l.Of)
	case "entry":
		return into(&h.Ledger, l.Of)
	case "trace":
		return into(&h.Traces, l.Of)
	case "job":
		return into(&h.Jobs, l.Of)
	case "machine":
		return into(&h.Machines, l.Of)
	case "process":
		return into(&h.Processes, l.Of)
	case "searched":
		return into(&h.Searched, l.Of)
	case "leak":
		return into(&h.Leaks, l.Of)
	default:
		return fmt.Errorf("%q is no kind of line", l.Kind)
	}
}

func into[T any](list *[]T, of []byte) error {
	var one T
	err := json.Unmarshal(of, &one)
	*list = append(*list, one)
	return err
}

// sort puts what has a time into its order. Lines of one moment stay as they were written.
func (h *History) sort() {
	slices.SortStableFunc(h.Workers, func(a, b Worker) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Submissions, func(a, b Submission) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Cancels, func(a, b Cancel) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Resumes, func(a, b Resume) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Seen, func(a, b Seen) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Samples, func(a, b Sample) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Ledger, func(a, b Entry) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Traces, func(a, b Trace) int { return int(a.At - b.At) })
	slices.SortStableFunc(h.Jobs, func(a, b Job) int { return int(a.ID - b.ID) })
}
