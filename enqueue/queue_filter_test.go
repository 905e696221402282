package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// TestQueueFilter ensures what each flag of a list means: bounds are inclusive and hold the whole of what they name.
func TestQueueFilter(t *testing.T) {
	zone := time.FixedZone("", 3600)
	at := func(hour, minute, second int) job.Time {
		return job.TimeOf(time.Date(2026, 1, 31, hour, minute, second, 0, zone))
	}
	now := at(12, 0, 0)
	for _, c := range []struct {
		name   string
		filter queueFilter
		want   store.Query
		err    string
	}{
		{"nothing", queueFilter{}, store.Query{Live: true}, ""},
		{"all", queueFilter{all: true}, store.Query{}, ""},
		{"status", queueFilter{statuses: "failed, failed-setup"}, store.Query{Statuses: []job.Status{job.Failed, job.FailedSetup}}, ""},
		{"status and live", queueFilter{statuses: "RUNNING", skipFinished: true}, store.Query{Statuses: []job.Status{job.Running}, Live: true}, ""},
		{"archived", queueFilter{archived: true}, store.Query{}, ""},
		{"page", queueFilter{all: true, below: 9, limit: 5}, store.Query{Before: 9, Limit: 5}, ""},
		{"minutes", queueFilter{all: true, since: "30m"}, store.Query{Since: at(11, 30, 0)}, ""},
		{"days", queueFilter{all: true, since: "2d"}, store.Query{Since: now.Add(-48 * time.Hour)}, ""},
		{"weeks", queueFilter{all: true, since: "1w"}, store.Query{Since: now.Add(-168 * time.Hour)}, ""},
		{"seconds", queueFilter{all: true, since: "90"}, store.Query{Since: at(11, 58, 30)}, ""},
		{"after a day", queueFilter{all: true, after: "2026-01-31"}, store.Query{Since: at(0, 0, 0)}, ""},
		{"before a day", queueFilter{all: true, before: "2026-01-31"}, store.Query{Until: at(24, 0, 0) - 1}, ""},
		{"before a minute", queueFilter{all: true, before: "2026-01-31 15:04"}, store.Query{Until: at(15, 5, 0) - 1}, ""},
		{"before a second", queueFilter{all: true, before: "2026-01-31T15:04:05"}, store.Query{Until: at(15, 4, 6) - 1}, ""},
		{"another zone", queueFilter{all: true, after: "2026-01-31T00:00:00Z"}, store.Query{Since: at(1, 0, 0)}, ""},
		{"no time", queueFilter{since: "-1h"}, store.Query{}, "--since"},
		{"endless", queueFilter{since: "99999999999w"}, store.Query{}, "--since"},
		{"not a number", queueFilter{since: "NaN"}, store.Query{}, "--since"},
		{"units only", queueFilter{since: "dw"}, store.Query{}, "--since"},
		{"empty", queueFilter{after: "2026-02-01", before: "2026-01-31"}, store.Query{}, "later than"},
		{"negative", queueFilter{limit: -1}, store.Query{}, "negative"},
		{"unknown status", queueFilter{statuses: "asleep"}, store.Query{}, "there are PENDING"},
		{"one too many", queueFilter{statuses: "failed,"}, store.Query{}, "no status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := c.filter.query(zone)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %+v, %v", q, err)
				}
				return
			}
			if diff := cmp.Diff(c.want, q.at(now), cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
