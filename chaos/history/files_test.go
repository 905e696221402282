package history

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Ensure that what was written is read back, whatever its type: in the order of time, the last run, each fault with its end.
func TestReadsWhatWasWritten(t *testing.T) {
	want := History{
		Run:         Run{Seed: 7, Size: "ci", Began: 1, CalmAt: 5, Times: Times{Lease: time.Second}},
		Workers:     []Worker{{At: 1, Name: "w1", PID: 2, Op: "started"}},
		Submissions: []Submission{{At: 1, Got: 2, Key: "k", Jobs: []int64{1, 2}, Expect: []string{"SUCCEEDED"}}},
		Cancels:     []Cancel{{At: 1, Got: 2, Job: 1}},
		Resumes:     []Resume{{At: 3, Got: 4, Job: 1, Saw: "CANCELLED", Tries: 2}},
		Preemptions: []Preemption{{At: 1, Machine: "m"}},
		Faults:      []Fault{{ID: 1, At: 1, Healed: 4, Name: "kill"}, {ID: 2, At: 2, Name: "freeze"}},
		Seen:        []Seen{{At: 1, Job: 1, Status: "RUNNING"}, {At: 2, Job: 1, Status: "SUCCEEDED"}},
		Samples:     []Sample{{At: 1, Slots: []Slot{{Job: 1}}, Overdue: time.Second}},
		Calls:       []Call{{At: 1, Args: []string{"queue"}, Exit: 1}},
		Ledger:      []Entry{{At: 1, Op: "create"}},
		Traces:      []Trace{{At: 1, Job: 1, Op: "start"}},
		Jobs:        []Job{{ID: 1, Status: "SUCCEEDED", Tasks: []Task{{Status: "SUCCEEDED"}}}},
		Machines:    []Machine{{At: 1, ID: "m"}},
		Processes:   []Process{{At: 1, PID: 3}},
		Searched:    []Searched{{Where: "redis", Bytes: 10}},
		Leaks:       []Leak{{Where: "redis", As: "plain"}},
	}
	w := NewWriter(t.TempDir())
	w.Add(Run{Seed: 7})
	w.Add(want.Seen[1])
	for list := range each(want) {
		w.Add(list)
	}
	w.Add(Heal{ID: 1, At: 4})
	w.Add(want.Run)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := Read(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// each yields all elements of a history but the second look at the job, and faults without their ends.
func each(h History) func(func(any) bool) {
	return func(yield func(any) bool) {
		v := reflect.ValueOf(h)
		for i := range v.NumField() {
			if v.Field(i).Kind() != reflect.Slice {
				continue
			}
			for j := range v.Field(i).Len() {
				one := v.Field(i).Index(j).Interface()
				if s, ok := one.(Seen); ok && s.At == 2 {
					continue
				}
				if f, ok := one.(Fault); ok {
					f.Healed = 0
					one = f
				}
				if !yield(one) {
					return
				}
			}
		}
	}
}

// Ensure that a line that nobody can read is an error that tells where it is, and a value without lines is one as well.
func TestBrokenHistory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileRun), []byte("{\"kind\":\"run\",\"of\":{}}\n{\"kind\":\"ruin\",\"of\":{}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), FileRun) || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "ruin") {
		t.Errorf("got %v", err)
	}
	w := NewWriter(t.TempDir())
	w.Add(42)
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "int") {
		t.Errorf("got %v", err)
	}
}
