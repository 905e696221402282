// Package account says how a job is told: to programs, whose shapes it fixes, and to people, whose words it chooses. The
// command line and the page tell the same.
package account

import (
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// Job is a job as programs read it (-o json). Fields are only ever added.
type Job struct {
	ID          job.ID     `json:"id"`
	Name        string     `json:"name"`
	User        string     `json:"user,omitempty"`
	Status      job.Status `json:"status"`
	Priority    int        `json:"priority"`
	Recoveries  int        `json:"recoveries"`
	SubmittedAt Time       `json:"submitted_at"`
	StartedAt   Time       `json:"started_at"`
	EndedAt     Time       `json:"ended_at"`
	Seconds     float64    `json:"duration_s"` // of user run time, without provisioning and recovery
	Where       string     `json:"where,omitempty"`
	Cancelling  bool       `json:"cancel_asked,omitempty"`
	Waits       *Wait      `json:"waits,omitempty"`
	Cause       *job.Cause `json:"cause,omitempty"`
	Tasks       []Task     `json:"tasks"`
}

// Task is one task of the chain.
type Task struct {
	Index      int        `json:"index"`
	Name       string     `json:"name,omitempty"`
	Status     job.Status `json:"status"`
	Attempts   int        `json:"attempts"`
	Recoveries int        `json:"recoveries"`
	Restarts   int        `json:"restarts"`
	StartedAt  Time       `json:"started_at"`
	EndedAt    Time       `json:"ended_at"`
	Seconds    float64    `json:"duration_s"`
	Cause      *job.Cause `json:"cause,omitempty"`
}

// Wait is what a job waits for.
type Wait struct {
	job.Cause
	Since Time `json:"since"`
	Until Time `json:"until"`
}

// Time is a time: RFC 3339 for programs, null for never.
type Time job.Time

// MarshalJSON implements json.Marshaler.
func (s Time) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return job.Time(s).Std().UTC().MarshalJSON()
}

// Of describes a job at a time by the store's clock.
func Of(r *job.Record, now job.Time) Job {
	a := Job{
		ID: r.ID, Name: r.Name, User: r.User, Status: r.Status(), Priority: r.Priority, Recoveries: r.Recoveries(),
		SubmittedAt: Time(r.SubmittedAt), Where: whereIs(r), Cancelling: r.Cancel != nil, Tasks: []Task{},
	}
	for i := range r.Tasks {
		t := taskOf(r, i, now)
		a.Tasks = append(a.Tasks, t)
		a.Seconds += t.Seconds
		if a.StartedAt == 0 {
			a.StartedAt = t.StartedAt
		}
		if a.Cause == nil && t.Status == a.Status {
			a.Cause = t.Cause
		}
		if r.Ended() {
			a.EndedAt = max(a.EndedAt, t.EndedAt)
		}
	}
	if !r.Wait.For.IsZero() && !r.Ended() {
		a.Waits = &Wait{r.Wait.For, Time(r.Wait.Since), Time(r.Wait.Until)}
	}
	return a
}

func taskOf(r *job.Record, i int, now job.Time) Task {
	t := &r.Tasks[i]
	a := Task{
		Index: i, Name: r.Head.Tasks[i].Name, Status: t.Status, Attempts: t.Attempts, Recoveries: t.Recoveries, Restarts: t.Restarts,
		StartedAt: Time(t.StartedAt), EndedAt: Time(t.EndedAt), Seconds: t.RunTime(now).Seconds(),
	}
	if !t.Cause.IsZero() {
		a.Cause = &t.Cause
	}
	return a
}

// whereIs is the place of a job's newest machine, "" if it has none.
func whereIs(r *job.Record) string {
	for i := len(r.Live) - 1; i >= 0; i-- {
		if a := r.Live[i]; a.Phase != job.PhaseClosing && a.Phase != job.PhaseIntent {
			return Place(a.Offer)
		}
	}
	return ""
}

// Place is where an offer is, as it is written in an infra: provider/region/zone.
func Place(o job.Offer) string {
	s := o.Provider + "/" + o.Region
	if o.Zone != "" && o.Zone != o.Region {
		s += "/" + o.Zone
	}
	return render.Text(s)
}

// Kind is what an offer is: its type and market.
func Kind(o job.Offer) string {
	s := o.Type
	if o.Spot {
		if s != "" {
			s += " "
		}
		s += "spot"
	}
	return render.Text(s)
}

// Explain is a cause in one sentence with its evidence.
func Explain(c job.Cause) string {
	s := c.Text
	if s == "" {
		s = string(c.Code)
	}
	if c.Evidence != "" {
		s += " (" + strings.ReplaceAll(c.Evidence, "\n", "; ") + ")"
	}
	return render.Text(s)
}

// At is the task of a chain that a job is at, from 1: the first one that has not succeeded, or the last.
func (j Job) At() int {
	at := 1
	for _, t := range j.Tasks {
		if t.Status == job.Succeeded && at < len(j.Tasks) {
			at++
		}
	}
	return at
}
