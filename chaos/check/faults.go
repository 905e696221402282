package check

import (
	"slices"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// driveWithin is how soon a job is driven again, whatever has died (G1).
const driveWithin = 20 * time.Second

// end of a fault: one that was never healed went on until the end.
func end(f history.Fault) history.Time {
	if f.Healed == 0 {
		return forever
	}
	return f.Healed
}

// during reports whether a fault that counts went on at some time from one moment to another.
func (f *file) during(from, to history.Time, counts func(history.Fault) bool) bool {
	return slices.ContainsFunc(f.Faults, func(x history.Fault) bool {
		return x.Failed == "" && counts(x) && x.At <= to && end(x) >= from
	})
}

// behind is by how much a replica may be late at any time.
const behind = 500 * time.Millisecond

// forgot reports whether some of what was written from one moment to another may have been lost again.
func (f *file) forgot(from, to history.Time) bool {
	return slices.ContainsFunc(f.Faults, func(x history.Fault) bool {
		return x.Failed == "" && x.Forgets != 0 && x.At.Add(-behind) <= to && x.Forgets >= from
	})
}

// ofNamesake reports whether what was done in the name of a job at a moment was done for another one, whose number was given
// again since Redis had lost it: it was before the job was submitted.
func (f *file) ofNamesake(id int64, when history.Time) bool {
	j := f.jobs[id]
	return j != nil && !j.Submitted.IsZero() && when < at(j.Submitted) && f.forgot(when.Add(-time.Minute), at(j.Submitted))
}

// stopsAll is a fault in which nobody can drive any job.
func stopsAll(x history.Fault) bool { return x.Stops == "all" }

// stopsSome is a fault in which somebody cannot.
func stopsSome(x history.Fault) bool { return stopsAll(x) || x.Stops == "one" }

// stopsTicks is a fault after which somebody has to take over what came by itself until then.
func stopsTicks(x history.Fault) bool { return x.Stops != "" }

// ofCloud gives what tells faults of a provider's operations.
func ofCloud(ops ...string) func(history.Fault) bool {
	return func(x history.Fault) bool { return slices.Contains(ops, x.Op) }
}

// either tells faults of one kind or another.
func either(counts ...func(history.Fault) bool) func(history.Fault) bool {
	return func(x history.Fault) bool {
		return slices.ContainsFunc(counts, func(c func(history.Fault) bool) bool { return c(x) })
	}
}

// deadline is when something must be done that takes no longer than within from a moment on. A fault that keeps it from
// being done gives that time anew when it is healed, and as much as it lasted beside that: waits between tries have grown
// to that by then.
func (f *file) deadline(from history.Time, within time.Duration, counts func(history.Fault) bool) history.Time {
	last := from.Add(within)
	for grew := true; grew; {
		grew = false
		for _, x := range f.Faults {
			if x.Failed != "" || !counts(x) || x.At > last || end(x) < from {
				continue
			}
			if x.Healed == 0 {
				return forever
			}
			if late := x.Healed.Add(within + x.Healed.Sub(max(x.At, from))); late > last {
				last, grew = late, true
			}
		}
	}
	return last
}

// waited is how long something has been left undone at a moment, without the time until the last fault was healed that
// counts.
func (f *file) waited(until history.Time, d time.Duration, counts func(history.Fault) bool) time.Duration {
	since := until.Add(-d)
	for _, x := range f.Faults {
		if x.Failed == "" && counts(x) && x.At <= until {
			since = max(since, min(end(x), until))
		}
	}
	return until.Sub(since)
}

// togetherAll are the times in which every worker was stopped by a fault of its own, so that nobody could drive anything.
func togetherAll(h history.History) []history.Fault {
	workers := map[string]bool{}
	for _, w := range h.Workers {
		workers[w.Name] = true
	}
	var times []history.Time // at which a worker's fault begins or ends
	for _, x := range h.Faults {
		if x.Stops == "one" && x.Failed == "" {
			times = append(times, x.At, end(x))
		}
	}
	slices.Sort(times)
	var all []history.Fault
	for i := 1; i < len(times); i++ {
		from, to := times[i-1], times[i]
		stopped := map[string]bool{}
		for _, x := range h.Faults {
			if x.Stops == "one" && x.Failed == "" && x.At <= from && end(x) >= to {
				stopped[x.Target] = true
			}
		}
		if len(workers) > 0 && len(stopped) >= len(workers) && from < to {
			x := history.Fault{At: from, Healed: to, Name: "all workers stopped, each by itself", Stops: "all"}
			if to == forever {
				x.Healed = 0
			}
			all = append(all, x)
		}
	}
	return all
}
