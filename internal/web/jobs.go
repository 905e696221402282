package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// jobsView is the list of jobs.
type jobsView struct {
	Filter  filter
	Pills   []pill
	Rows    []jobRow
	First   string // URL of the first page, if this is another one
	Next    string // URL of the page after this one
	Damaged int    // records that cannot be read
	Empty   bool   // there is not one job in the deployment
}

// pill narrows the list down to a status, and tells how many jobs have it.
type pill struct {
	Label  string
	Status job.Status // "" for all, or all that live
	Count  string
	URL    string
	On     bool
}

// jobRow is one job in the list.
type jobRow struct {
	ID         job.ID
	Name       string
	User       string
	UserURL    string
	Status     job.Status
	Progress   string
	Submitted  *stamp
	Ran        string
	Recoveries int
	Note       string
}

func (s *Server) jobs(w http.ResponseWriter, r *http.Request) error {
	f, err := parseFilter(r.URL.RawQuery)
	if err != nil {
		return err
	}
	list, err := s.list(r.Context(), f)
	if err != nil {
		return err
	}
	counts, err := s.cfg.Store.Statuses(r.Context())
	if err != nil {
		return err
	}
	v := jobsView{Filter: f, Pills: pills(f, counts), Damaged: list.Damaged, Empty: total(counts, false) == 0}
	for _, j := range list.Jobs {
		v.Rows = append(v.Rows, rowOf(j, list.now))
	}
	if list.Next > 0 {
		v.Next = f.from(list.Next).URL()
	}
	if f.Before > 0 {
		v.First = f.from(0).URL()
	}
	s.show(w, r, http.StatusOK, view{Page: "jobs", Title: "Jobs", Nav: "/", Script: true, Data: v})
	return nil
}

// jobList is a page of jobs, as programs read it.
type jobList struct {
	Jobs    []account.Job `json:"jobs"`
	Next    job.ID        `json:"next,omitempty"`    // give it as before for the next page
	Damaged int           `json:"damaged,omitempty"` // records that cannot be read

	now job.Time
}

func (s *Server) list(ctx context.Context, f filter) (jobList, error) {
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return jobList{}, err
	}
	find := s.cfg.Store.Find
	if f.Archived {
		find = s.all.FindArchived
	}
	page, err := find(ctx, f.query(now))
	if err != nil {
		return jobList{}, err
	}
	for _, err := range page.Damaged {
		s.cfg.Log.Error().Err(err).Msg("a record is left out of the list")
	}
	list := jobList{Jobs: make([]account.Job, len(page.Jobs)), Next: page.Next, Damaged: len(page.Damaged), now: now}
	for i := range page.Jobs {
		list.Jobs[i] = account.Of(&page.Jobs[i], now)
	}
	return list, nil
}

func rowOf(j account.Job, now job.Time) jobRow {
	row := jobRow{
		ID: j.ID, Name: render.Text(j.Name), User: render.Text(j.User), Status: j.Status, Progress: progress(j),
		Submitted: when(j.SubmittedAt, now), Ran: account.Lasted(j.Seconds), Recoveries: j.Recoveries, Note: j.Note(account.Explain),
	}
	if row.Name == "" {
		row.Name = "job " + strconv.FormatInt(int64(j.ID), 10)
	}
	if j.User != "" {
		row.UserURL = "/?" + url.Values{"user": {j.User}}.Encode()
	}
	return row
}

// pills are the statuses that any job has, and those that were asked for.
func pills(f filter, counts map[job.Status]int64) []pill {
	out := []pill{
		{Label: "All", Count: count(total(counts, false)), URL: f.whole(false).URL(), On: len(f.Statuses) == 0 && !f.Live && !f.Archived},
		{Label: "Live", Count: count(total(counts, true)), URL: f.whole(true).URL(), On: f.Live},
	}
	if f.Archived {
		counts = nil // they are of the jobs that are not in the archive
	}
	asked := map[job.Status]bool{}
	for _, s := range f.Statuses {
		asked[s] = true
	}
	for _, s := range job.Statuses {
		if counts[s] > 0 || asked[s] {
			out = append(out, pill{Label: string(s), Status: s, Count: count(counts[s]), URL: f.toggled(s).URL(), On: asked[s]})
		}
	}
	if f.Archived {
		for i := range out[2:] {
			out[2+i].Count = ""
		}
	}
	return append(out, pill{Label: "Archived", URL: f.old().URL(), On: f.Archived})
}

// total is how many jobs there are, or how many of them live.
func total(counts map[job.Status]int64, live bool) int64 {
	n := int64(0)
	for s, c := range counts {
		if !live || !s.Terminal() {
			n += c
		}
	}
	return n
}
