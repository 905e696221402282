package store

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// A record is a hash of short fields: numbers that scripts compare, and JSON for what only decisions read.
//
//	head    never changes           states  statuses of the tasks, comma-separated: the from-state of every commit
//	step    who acts next           n, ran  number of the act that must exist, and of the one that last began
//	fence   raised by every claim   seq     raised by every commit      wakes  raised by every wake
//	held    claim is good until     holder  token of the act that holds it
//	calm    what to ask the agent while nothing changes; absent if the record is to be read. See calm.go
//	limit   when a limit of the user is reached, for the watch; absent if none is in force
//	shut    when the commit was written that last began to close an attempt; absent if none is being closed
//	resumed token of the call that let the job go again last
//	cur tasks live look wait fault cancel preempt follow doubt: see job.Record
type fields map[string]string

// encode gives the fields of a record that decisions may change. Zero values are left out. A cancel is not among them:
// only users write it, and nothing takes it back (G7).
func encode(r *job.Record) (fields, error) {
	f := fields{
		"states": states(r),
		"step":   string(r.Step),
		"n":      strconv.FormatInt(r.Dispatch, 10),
	}
	if r.Cur != 0 {
		f["cur"] = strconv.Itoa(r.Cur)
	}
	if limit := r.Deadline(); limit != 0 {
		f["limit"] = strconv.FormatInt(int64(limit), 10)
	}
	if text := ticket(r); text != "" {
		f["calm"] = text
	}
	if closing := func(a job.Attempt) bool { return a.Phase == job.PhaseClosing }; r.Shut != 0 && slices.ContainsFunc(r.Live, closing) {
		f["shut"] = strconv.FormatInt(int64(r.Shut), 10)
	}
	if r.Doubt != 0 {
		f["doubt"] = strconv.FormatInt(int64(r.Doubt), 10)
	}
	for name, v := range map[string]any{"tasks": r.Tasks, "live": r.Live, "look": r.Look, "wait": r.Wait, "fault": r.Fault, "preempt": r.Preempt} {
		if rv := reflect.ValueOf(v); rv.IsZero() || rv.Kind() == reflect.Slice && rv.Len() == 0 {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		f[name] = string(b)
	}
	return f, nil
}

// CorruptError says that a record cannot be read. The job is left alone and told about.
type CorruptError struct {
	ID  job.ID
	Err error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the record of job %d is damaged: %v", e.ID, e.Err)
}

// Unwrap returns what was wrong.
func (e *CorruptError) Unwrap() error { return e.Err }

// decode reads a record.
func decode(id job.ID, f fields) (job.Record, *CorruptError) {
	var r job.Record
	bad := func(err error) (job.Record, *CorruptError) { return job.Record{}, &CorruptError{ID: id, Err: err} }
	if err := json.Unmarshal([]byte(f["head"]), &r.Head); err != nil {
		return bad(fmt.Errorf("head: %w", err))
	}
	if r.ID != id { // every commit would go to another job
		return bad(fmt.Errorf("head: it is that of job %d", r.ID))
	}
	if r.Step = job.Step(f["step"]); !r.Step.Acts() && r.Step != job.StepWatch && r.Step != job.StepDone {
		return bad(fmt.Errorf("step %q", r.Step))
	}
	for name, to := range map[string]any{"tasks": &r.Tasks, "live": &r.Live, "look": &r.Look, "wait": &r.Wait, "fault": &r.Fault, "cancel": &r.Cancel, "preempt": &r.Preempt} {
		if f[name] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(f[name]), to); err != nil {
			return bad(fmt.Errorf("%s: %w", name, err))
		}
	}
	for name, to := range map[string]*int64{
		"n": &r.Dispatch, "ran": &r.Ran, "fence": &r.Fence, "seq": &r.Seq, "wakes": &r.Wakes,
		"held": (*int64)(&r.HeldTo), "follow": (*int64)(&r.Follow), "doubt": (*int64)(&r.Doubt), "shut": (*int64)(&r.Shut),
	} {
		if f[name] == "" {
			continue
		}
		n, err := strconv.ParseInt(f[name], 10, 64)
		if err != nil {
			return bad(fmt.Errorf("%s: %w", name, err))
		}
		*to = n
	}
	cur, err := strconv.Atoi(cmp.Or(f["cur"], "0"))
	if err != nil || cur < 0 || cur >= len(r.Tasks) {
		return bad(fmt.Errorf("cur is %q of %d tasks", f["cur"], len(r.Tasks)))
	}
	r.Cur, r.Calm = cur, f["calm"] != ""
	list := strings.Split(f["states"], ",")
	if len(list) != len(r.Tasks) || len(list) != len(r.Head.Tasks) {
		return bad(fmt.Errorf("%d statuses, %d tasks, %d task heads", len(list), len(r.Tasks), len(r.Head.Tasks)))
	}
	for i, s := range list {
		if r.Tasks[i].Status = job.Status(s); !r.Tasks[i].Status.Valid() {
			return bad(fmt.Errorf("status %q", s))
		}
	}
	return r, nil
}

func states(r *job.Record) string {
	list := make([]string, len(r.Tasks))
	for i, t := range r.Tasks {
		list[i] = string(t.Status)
	}
	return strings.Join(list, ",")
}

// asFields turns a flat reply of HGETALL into fields.
func asFields(v any) fields {
	list, _ := v.([]any)
	f := make(fields, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		k, _ := list[i].(string)
		f[k], _ = list[i+1].(string)
	}
	return f
}
