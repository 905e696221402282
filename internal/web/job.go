package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// jobView is all about one job.
type jobView struct {
	ID         job.ID
	Name       string
	Status     job.Status
	Progress   string
	Said       string // what became of the visitor's own action
	User       string
	UserURL    string
	Priority   int
	Submitted  *stamp
	Started    *stamp
	Ended      *stamp
	Ran        string
	Recoveries int
	Because    string
	Waits      string
	Where      string
	Cost       string
	Cancelling bool
	Retired    *stamp // when it went into the archive

	Actions  []action
	Tasks    []taskRow // of a chain
	Timeline picture
	Attempts []attemptRow
	Events   []eventRow
	Request  string // as YAML
	Log      logView
	Done     bool // nothing happens to it any more
}

type taskRow struct {
	Index      int
	Name       string
	Status     job.Status
	Started    *stamp
	Ran        string
	Recoveries int
	Restarts   int
	Cause      string
}

type attemptRow struct {
	Number  string
	Where   string
	Kind    string
	Price   string
	Phase   job.Phase
	Began   *stamp
	Ran     string
	Because string
	Cost    string
	LogURL  string
}

type eventRow struct {
	At     *stamp
	Status job.Status // that it changed to; "" for what is no change of status
	Text   string
}

// known is all that is known about a job at a time.
type known struct {
	rec     job.Record
	history account.History
	request job.Request
	retired job.Time // when it left the store for the archive; 0 if it did not
	now     job.Time
}

func (s *Server) know(ctx context.Context, id job.ID) (known, error) {
	all, retired, err := s.all.Whole(ctx, id)
	if err != nil {
		return known{}, err
	}
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return known{}, err
	}
	return known{all.Record, account.HistoryOf(&all.Record, all.Past, all.Events, now), all.Request, retired, now}, nil
}

// chosen is the job that a request names, and what of its output.
func (s *Server) chosen(r *http.Request) (known, logSel, error) {
	id, err := jobID(r)
	if err != nil {
		return known{}, logSel{}, err
	}
	k, err := s.know(r.Context(), id)
	if err != nil {
		return known{}, logSel{}, err
	}
	sel, err := selectLog(r, &k.rec)
	return k, sel, err
}

func (s *Server) job(w http.ResponseWriter, r *http.Request) error {
	k, sel, err := s.chosen(r)
	if err != nil {
		return err
	}
	id := k.rec.ID
	v := jobViewOf(k)
	v.Said = sentences[r.URL.Query().Get("said")]
	if s.cfg.Actions != nil && k.retired.IsZero() {
		v.Actions = possible(&k.rec)
	}
	v.Log = s.newestOutput(r.Context(), k, sel, r.Header.Get(renewHeader) != "")
	s.show(w, r, http.StatusOK, view{
		Page: "job", Title: fmt.Sprintf("%s · job %d", v.Name, id), Status: v.Status, Nav: "/", Script: true, Data: v,
	})
	return nil
}

// renewHeader says that a page is there already and is to be renewed: the output comes by another way.
const renewHeader = "Outlast-Renew"

// jobViewOf is the pure part of the page.
func jobViewOf(k known) jobView {
	h, now := k.history, k.now
	v := jobView{
		ID: h.ID, Name: render.Text(h.Name), Status: h.Status, Progress: progress(h.Job), User: render.Text(h.User),
		Priority: h.Priority, Submitted: when(h.SubmittedAt, now), Started: when(h.StartedAt, now), Ended: when(h.EndedAt, now),
		Ran: account.Lasted(h.Seconds), Recoveries: h.Recoveries, Where: h.Where, Cost: account.Money(h.Cost),
		Retired: when(account.Time(k.retired), now), Cancelling: h.Cancelling && !h.Status.Terminal(), Request: requestYAML(k.request), Done: k.rec.Step == job.StepDone,
	}
	if v.Name == "" {
		v.Name = "job " + strconv.FormatInt(int64(h.ID), 10)
	}
	if h.User != "" {
		v.UserURL = "/?" + url.Values{"user": {h.User}}.Encode()
	}
	if h.Cause != nil {
		v.Because = account.Explain(*h.Cause)
	}
	if h.Waits != nil {
		v.Waits = account.Explain(h.Waits.Cause)
	}
	chain := len(h.Tasks) > 1
	if chain {
		for _, t := range h.Tasks {
			v.Tasks = append(v.Tasks, taskRowOf(t, now))
		}
	}
	for _, a := range h.Attempts {
		v.Attempts = append(v.Attempts, attemptRowOf(h.ID, a, chain, now))
	}
	for _, e := range h.Events {
		row := eventRow{At: clock(e.At, now), Text: account.EventLine(e.Event(), chain)}
		if s := job.Status(e.To); s.Valid() {
			row.Status = s
		}
		v.Events = append(v.Events, row)
	}
	v.Timeline = pictureOf(account.TimelineOf(h, now), chain)
	return v
}

func taskRowOf(t account.Task, now job.Time) taskRow {
	row := taskRow{
		Index: t.Index, Name: render.Text(t.Name), Status: t.Status, Started: when(t.StartedAt, now), Ran: account.Lasted(t.Seconds),
		Recoveries: t.Recoveries, Restarts: t.Restarts,
	}
	if t.Cause != nil {
		row.Cause = account.Explain(*t.Cause)
	}
	return row
}

func attemptRowOf(id job.ID, a account.Attempt, chain bool, now job.Time) attemptRow {
	row := attemptRow{
		Number: tryName(a.Task, a.Number, chain), Where: account.Place(a.Offer), Kind: account.Kind(a.Offer), Price: account.Price(a.Offer.Price),
		Phase: a.Phase, Began: when(a.Intent, now), Ran: a.Ran(now), Because: account.EndOf(a), Cost: account.Money(a.Cost),
	}
	if a.Started != 0 {
		row.LogURL = logURL(id, a.Task, a.Number)
	}
	return row
}

// tryName is the number of an attempt, with that of its task in a chain.
func tryName(task, number int, chain bool) string {
	if chain {
		return fmt.Sprintf("%d.%d", task, number)
	}
	return strconv.Itoa(number)
}
