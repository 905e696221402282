package web

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

const (
	pageSize    = 50
	maxPageSize = 200
	// examined bounds the jobs that are looked at for one page: a search for few of very many jobs goes on from page to
	// page, and no page is slow.
	examined = 2_000_000
)

// filter is what a list of jobs is narrowed down to, as its URL says it. The zero filter is all jobs.
type filter struct {
	Statuses []job.Status
	Live     bool
	Archived bool // those that have moved to the archive, instead
	User     string
	Name     string
	Since    string // as given: "30m", "7d"
	since    time.Duration
	Before   job.ID
	Limit    int // 0 is pageSize
}

// parseFilter reads a filter. Several statuses are given by commas or by repeating, in any case.
func parseFilter(query string) (filter, error) {
	q, err := url.ParseQuery(query)
	if err != nil { // what cannot be read would be left out, and the list be longer than was asked for
		return filter{}, badRequest("this filter cannot be read: write %%3B for ; and %%25 for %%")
	}
	f := filter{User: q.Get("user"), Name: q.Get("name"), Since: strings.TrimSpace(q.Get("since"))}
	if f.Live, err = parseSwitch(q.Get("live"), "live", "jobs that have not ended"); err != nil {
		return f, err
	}
	if f.Archived, err = parseSwitch(q.Get("archived"), "archived", "jobs that have moved to the archive"); err != nil {
		return f, err
	}
	if f.Live && f.Archived {
		return f, badRequest("live and archived exclude each other: all jobs in the archive have ended")
	}
	for _, list := range q["status"] {
		for _, word := range strings.Split(list, ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			s := job.Status(strings.ToUpper(word))
			if !s.Valid() {
				return f, badRequest("%q is no status. There are %s.", word, joinStatuses(job.Statuses, ", "))
			}
			if !slices.Contains(f.Statuses, s) {
				f.Statuses = append(f.Statuses, s)
			}
		}
	}
	if f.since, err = parseAge(f.Since); err != nil {
		return f, err
	}
	before, err := parseNumber(q.Get("before"), "before", 1<<53)
	if err != nil {
		return f, err
	}
	limit, err := parseNumber(q.Get("limit"), "limit", maxPageSize)
	if err != nil {
		return f, err
	}
	f.Before, f.Limit = job.ID(before), int(limit)
	return f, nil
}

func parseSwitch(text, name, what string) (bool, error) {
	switch text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, badRequest("%s is 1 for %s, or left out", name, what)
	}
}

func parseNumber(text, name string, most int64) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, badRequest("%s must be a number from 1 to %d", name, most)
	}
	return n, nil
}

// longestAge is a bound for "since": more is all there is.
const longestAge = 100 * 365 * 24 * time.Hour

// parseAge reads how far back a list goes: a duration of Go, or a number of days or weeks such as 7d or 2w.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	unit := map[byte]time.Duration{'d': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	var d time.Duration
	var err error
	if unit != 0 {
		var n float64
		n, err = strconv.ParseFloat(text[:len(text)-1], 64)
		if n > 0 && !math.IsInf(n, 1) { // NaN is not
			d = time.Duration(min(n*float64(unit), float64(longestAge)))
		}
	} else {
		d, err = time.ParseDuration(text)
	}
	if err != nil || d <= 0 {
		return 0, badRequest("%q is no time to go back to: it is written as 30m, 48h, 7d or 2w", text)
	}
	return min(d, longestAge), nil
}

// query is what the store is asked for at a time.
func (f filter) query(now job.Time) store.Query {
	q := store.Query{
		Statuses: f.Statuses, Live: f.Live, User: f.User, Name: f.Name, Before: f.Before, Limit: f.size(), Examine: examined,
	}
	if f.Archived {
		q.Examine = 0 // each entry is an object that is read: the archive has a bound of its own
	}
	if f.since > 0 {
		q.Since = now.Add(-f.since)
	}
	return q
}

func (f filter) size() int {
	if f.Limit == 0 {
		return pageSize
	}
	return f.Limit
}

// URL is the list with this filter.
func (f filter) URL() string {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("status", joinStatuses(f.Statuses, ","))
	if f.Live {
		q.Set("live", "1")
	}
	if f.Archived {
		q.Set("archived", "1")
	}
	set("user", f.User)
	set("name", f.Name)
	set("since", f.Since)
	if f.Before > 0 {
		q.Set("before", strconv.FormatInt(int64(f.Before), 10))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// StatusWords is the statuses as the URL has them.
func (f filter) StatusWords() string { return joinStatuses(f.Statuses, ",") }

// Narrow reports whether the filter leaves out anything.
func (f filter) Narrow() bool {
	return len(f.Statuses) > 0 || f.Live || f.Archived || f.User != "" || f.Name != "" || f.Since != ""
}

// toggled has a status more, or less, and begins with the first page.
func (f filter) toggled(s job.Status) filter {
	f.Before, f.Live = 0, false
	kept := slices.DeleteFunc(slices.Clone(f.Statuses), func(t job.Status) bool { return t == s })
	if len(kept) == len(f.Statuses) {
		kept = append(kept, s)
	}
	f.Statuses = kept
	return f
}

// whole has no status at all, or only those of jobs that live.
func (f filter) whole(live bool) filter {
	f.Before, f.Live, f.Archived, f.Statuses = 0, live, false, nil
	return f
}

// old is the jobs that have moved to the archive.
func (f filter) old() filter {
	f = f.whole(false)
	f.Archived = true
	return f
}

// from is the page that begins before an id; 0 is the first.
func (f filter) from(id job.ID) filter {
	f.Before = id
	return f
}

func joinStatuses(list []job.Status, between string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return strings.Join(words, between)
}
