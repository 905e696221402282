package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/outlast-dev/outlast/internal/didyoumean"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// queueFilter is which jobs a list is to show, as the flags say it.
type queueFilter struct {
	all, skipFinished, archived bool
	statuses                    string
	since, after, before        string
	user, name                  string
	below                       int64
	limit                       int
}

func (f *queueFilter) add(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.all, "all", "a", false, "also jobs that have ended")
	flags.StringVarP(&f.statuses, "status", "s", "", "only jobs of the statuses in `LIST`, comma-separated")
	flags.BoolVar(&f.skipFinished, "skip-finished", false, "no jobs that have ended; the default without -a and -s")
	flags.StringVarP(&f.name, "name", "n", "", "only jobs with `TEXT` in their name, in any case")
	flags.StringVar(&f.user, "user", "", "only jobs of the user `NAME`")
	flags.StringVar(&f.since, "since", "", "only jobs submitted within `TIME`: 30m, 48h, 7d, 2w, or seconds")
	flags.StringVar(&f.after, "after", "", "only jobs submitted at `TIME` or later: 2026-01-31, or '2026-01-31 15:04'")
	flags.StringVar(&f.before, "before", "", "only jobs submitted at `TIME` or earlier; a day is meant as a whole")
	flags.IntVarP(&f.limit, "limit", "l", 50, "at most `N`, 0 for all")
	flags.Int64Var(&f.below, "below", 0, "only jobs with a number below `N`: the next page")
	flags.BoolVar(&f.archived, "archived", false, "jobs that have moved to the archive, instead")
}

// queueQuery is what a filter asks for, at any time.
type queueQuery struct {
	store.Query
	since    time.Duration // before the time of the look; zero is no bound
	archived bool
}

// at is the query at a time.
func (q queueQuery) at(now job.Time) store.Query {
	if q.since > 0 {
		q.Since = now.Add(-q.since)
	}
	return q.Query
}

// query reads the flags; times without a zone are of this one.
func (f *queueFilter) query(zone *time.Location) (queueQuery, error) {
	q := queueQuery{Query: store.Query{User: f.user, Name: f.name, Limit: f.limit, Before: job.ID(f.below)}, archived: f.archived}
	switch {
	case f.limit < 0 || f.below < 0:
		return q, usagef("--limit and --below must not be negative")
	case f.all && f.skipFinished:
		return q, usagef("-a and --skip-finished exclude each other")
	case f.archived && f.skipFinished:
		return q, usagef("--archived and --skip-finished exclude each other: all jobs in the archive have ended")
	case f.since != "" && f.after != "":
		return q, usagef("--since and --after exclude each other")
	}
	q.Live = f.skipFinished || !f.all && !f.archived && f.statuses == ""
	var err error
	if q.Statuses, err = parseStatuses(f.statuses); err != nil {
		return q, err
	}
	if f.since != "" {
		if q.since, err = parseSince(f.since); err != nil {
			return q, err
		}
	}
	if f.after != "" {
		at, _, err := parseTime("after", f.after, zone)
		if err != nil {
			return q, err
		}
		q.Since = job.TimeOf(at)
	}
	if f.before != "" {
		_, end, err := parseTime("before", f.before, zone)
		if err != nil {
			return q, err
		}
		q.Until = job.TimeOf(end) - 1
	}
	if q.Until > 0 && q.Since > q.Until {
		return q, usagef("--after %s is later than --before %s", f.after, f.before)
	}
	return q, nil
}

// parseStatuses reads statuses in any case.
func parseStatuses(list string) ([]job.Status, error) {
	if list == "" {
		return nil, nil
	}
	names := make([]string, len(job.Statuses))
	for i, s := range job.Statuses {
		names[i] = string(s)
	}
	var out []job.Status
	for word := range strings.SplitSeq(list, ",") {
		name := strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(word)), "-", "_")
		switch near := didyoumean.Nearest(name, names); {
		case slices.Contains(names, name):
			out = append(out, job.Status(name))
		case near != "":
			return nil, usagef("--status: there is no status %q: did you mean %s?", word, near)
		default:
			return nil, usagef("--status: there is no status %q; there are %s", word, strings.Join(names, ", "))
		}
	}
	return out, nil
}

// parseSince reads a length of time: as Go writes it, in days or weeks, or in seconds.
func parseSince(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	units := map[string]time.Duration{"d": day, "w": 7 * day, "": time.Second}
	number := strings.TrimRight(text, "dw")
	d, err := time.ParseDuration(text)
	if n, notNumber := strconv.ParseFloat(number, 64); notNumber == nil {
		if unit, ok := units[text[len(number):]]; ok && n < float64(1<<62)/float64(unit) {
			d, err = time.Duration(n*float64(unit)), nil
		}
	}
	if err != nil || d <= 0 {
		return 0, usagef("--since %q: it must be a time such as 30m, 48h, 7d or 2w, or a number of seconds", text)
	}
	return d, nil
}

// timeForms are how a time may be written, each with what it names: a bound holds all of it.
var timeForms = []struct {
	layout string
	unit   func(time.Time) time.Time // its end
}{
	{time.DateOnly, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01-02 15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{time.DateTime, func(t time.Time) time.Time { return t.Add(time.Second) }},
	{"2006-01-02T15:04:05", func(t time.Time) time.Time { return t.Add(time.Second) }},
	{time.RFC3339, func(t time.Time) time.Time { return t.Add(time.Second) }},
}

// parseTime reads a time, and says where what it names begins and ends.
func parseTime(flag, text string, zone *time.Location) (from, to time.Time, err error) {
	for _, form := range timeForms {
		if t, err := time.ParseInLocation(form.layout, text, zone); err == nil {
			return t, form.unit(t), nil
		}
	}
	return from, to, usagef("--%s %q: it must be a time such as 2026-01-31, '2026-01-31 15:04' or 2026-01-31T15:04:05Z", flag, text)
}
