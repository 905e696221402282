package job

// News is a change of a task's status as it is told to the world outside: to a callback or a webhook. It holds what was
// true when the change was committed, since it may be told much later.
type News struct {
	Event
	KeptAt     Time   `json:"kept_at,omitempty"` // when the store took it, later than At; set by the store
	Job        Status `json:"job"`               // of the job as a whole, after the change
	Final      bool   `json:"final,omitempty"`   // the job has ended
	StartedAt  Time   `json:"started_at,omitempty"`
	EndedAt    Time   `json:"ended_at,omitempty"`
	RunMS      int64  `json:"run_ms,omitempty"`
	Recoveries int    `json:"recoveries,omitempty"`
	Where      string `json:"where,omitempty"`   // the offer of the machine that the task has, or had last
	Machine    string `json:"machine,omitempty"` // and its name
}

// NewsOf are the changes of status in a record's outbox; none if the job has nobody to tell.
func NewsOf(r *Record) []News {
	if !r.Tells {
		return nil
	}
	var out []News
	for _, e := range r.Events {
		if e.Kind == "status" && e.Task < len(r.Tasks) {
			out = append(out, newsOf(r, e))
		}
	}
	return out
}

func newsOf(r *Record, e Event) News {
	t := &r.Tasks[e.Task]
	n := News{
		Event: e, Job: r.Status(), Final: r.Ended(), StartedAt: t.StartedAt, EndedAt: t.EndedAt,
		RunMS: t.RunTime(e.At).Milliseconds(), Recoveries: t.Recoveries,
	}
	for _, list := range [][]Attempt{r.Past, r.Live} {
		for _, a := range list {
			if a.Task == e.Task && len(a.Nodes) > 0 {
				n.Where, n.Machine = a.Offer.String(), a.Nodes[0].ID
			}
		}
	}
	return n
}

// Name is what SkyPilot's users call the change (SkyPilot: jobs/state.py, callback_func).
func (n *News) Name() string {
	switch to := Status(n.To); {
	case to == Pending:
		return "SUBMITTED"
	case to == Running && Status(n.From) == Recovering:
		return "RECOVERED"
	case to == Running:
		return "STARTED"
	case to.Failure():
		return "FAILED"
	default:
		return n.To
	}
}
