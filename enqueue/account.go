package main

import (
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// account is a job as programs read it (-o json). Fields are only ever added.
type account struct {
	ID          job.ID        `json:"id"`
	Name        string        `json:"name"`
	User        string        `json:"user,omitempty"`
	Status      job.Status    `json:"status"`
	Priority    int           `json:"priority"`
	Recoveries  int           `json:"recoveries"`
	SubmittedAt stamp         `json:"submitted_at"`
	StartedAt   stamp         `json:"started_at"`
	EndedAt     stamp         `json:"ended_at"`
	Seconds     float64       `json:"duration_s"` // of user run time, without provisioning and recovery
	Where       string        `json:"where,omitempty"`
	Cancelling  bool          `json:"cancel_asked,omitempty"`
	Waits       *wait         `json:"waits,omitempty"`
	Cause       *job.Cause    `json:"cause,omitempty"`
	Tasks       []taskAccount `json:"tasks"`
}

// taskAccount is one task of the chain.
type taskAccount struct {
	Index      int        `json:"index"`
	Name       string     `json:"name,omitempty"`
	Status     job.Status `json:"status"`
	Attempts   int        `json:"attempts"`
	Recoveries int        `json:"recoveries"`
	Restarts   int        `json:"restarts"`
	StartedAt  stamp      `json:"started_at"`
	EndedAt    stamp      `json:"ended_at"`
	Seconds    float64    `json:"duration_s"`
	Cause      *job.Cause `json:"cause,omitempty"`
}

// wait is what a job waits for.
type wait struct {
	job.Cause
	Since stamp `json:"since"`
	Until stamp `json:"until"`
}

// stamp is a time: RFC 3339 for programs, null for never.
type stamp job.Time

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return job.Time(s).Std().UTC().MarshalJSON()
}

// accountOf describes a job at a time by the store's clock.
func accountOf(r *job.Record, now job.Time) account {
	a := account{
		ID: r.ID, Name: r.Name, User: r.User, Status: r.Status(), Priority: r.Priority, Recoveries: r.Recoveries(),
		SubmittedAt: stamp(r.SubmittedAt), Where: whereIs(r), Cancelling: r.Cancel != nil, Tasks: []taskAccount{},
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
		a.Waits = &wait{r.Wait.For, stamp(r.Wait.Since), stamp(r.Wait.Until)}
	}
	return a
}

func taskOf(r *job.Record, i int, now job.Time) taskAccount {
	t := &r.Tasks[i]
	a := taskAccount{
		Index: i, Name: r.Head.Tasks[i].Name, Status: t.Status, Attempts: t.Attempts, Recoveries: t.Recoveries, Restarts: t.Restarts,
		StartedAt: stamp(t.StartedAt), EndedAt: stamp(t.EndedAt), Seconds: t.RunTime(now).Seconds(),
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
			return place(a.Offer)
		}
	}
	return ""
}

// place is where an offer is, as it is written in an infra: provider/region/zone.
func place(o job.Offer) string {
	s := o.Provider + "/" + o.Region
	if o.Zone != "" && o.Zone != o.Region {
		s += "/" + o.Zone
	}
	return render.Text(s)
}

// kind is what an offer is: its type and market.
func kind(o job.Offer) string {
	s := o.Type
	if o.Spot {
		if s != "" {
			s += " "
		}
		s += "spot"
	}
	return render.Text(s)
}

// explain is a cause in one sentence with its evidence.
func explain(c job.Cause) string {
	s := c.Text
	if s == "" {
		s = string(c.Code)
	}
	if c.Evidence != "" {
		s += " (" + c.Evidence + ")"
	}
	return render.Text(s)
}

// ago is how long ago t was, "" for never.
func ago(t stamp, now job.Time) string {
	if t == 0 {
		return ""
	}
	return render.Ago(now.Sub(job.Time(t)))
}

// lasted is a duration in seconds for people, "" for none.
func lasted(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return render.Duration(time.Duration(seconds * float64(time.Second)))
}
