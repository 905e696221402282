package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// settling is how soon a slot is given back after the commit that says that it is not needed, or taken back by the fleet if
// that was lost.
const settling = 10 * time.Second

// idle are the waits of a job at the step launch that need no slot: nothing of it is on its way.
var idle = []string{"launch_slot", "backoff", "no_capacity", "quota", "secrets_locked", "controller_fault", "closing"}

// waitingHoldsNothing: the launch slots held are those of live launches, never more than there are, and none is left at the
// end. Faults may keep the fleet from taking back what a driver did not give back, each for as long as it takes until the fleet's
// ticks go on, and all together for that long outside of outages.
func waitingHoldsNothing(f *file, report func(Violation)) {
	type key struct {
		job   int64
		until history.Time
	}
	since, told := map[key]history.Time{}, map[int64]bool{}
	if len(f.Samples) == 0 && len(f.Jobs) > 0 {
		report(Violation{Text: "nobody has looked at who holds launch slots, so nothing is known of them"})
	}
	for i, s := range f.Samples {
		if n := f.Run.Launches; n > 0 && len(s.Slots) > n {
			report(Violation{At: s.At, Text: fmt.Sprintf("%d launch slots were held, and there are %d", len(s.Slots), n), Evidence: f.clock(s.At)})
		}
		now := map[key]history.Time{}
		for _, slot := range s.Slots {
			k := key{slot.Job, slot.Until}
			why := needless(slot)
			if why == "" || told[slot.Job] || slot.Until < s.At {
				continue
			}
			now[k] = first(since[k], s.At)
			last := i == len(f.Samples)-1 && f.Run.CalmAt != 0
			if f.tooLong(now[k], s.At) || last {
				told[slot.Job] = true
				report(Violation{Job: slot.Job, At: s.At, Text: "it held a launch slot, and " + why, Evidence: fmt.Sprintf("%s until %s", f.clock(now[k]), f.clock(s.At)[len("at "):])})
			}
		}
		since = now
	}
}

// tooLong reports whether a slot was held for nothing from one moment to another for longer than faults excuse.
func (f *file) tooLong(from, to history.Time) bool {
	const atMost = driveWithin + settling
	held := to.Sub(from)
	return held > settling && !f.during(to.Add(-atMost), to, stopsTicks) || f.waited(to, held, stopsAll) > atMost
}

// needless tells why a slot is of no use to its job; "" if it may be.
func needless(s history.Slot) string {
	switch {
	case finals[s.Status]:
		return "had ended as " + s.Status
	case s.Step != "launch" && s.Step != "":
		return "was at step " + s.Step
	case slices.Contains(idle, s.Wait):
		return "waited: " + s.Wait
	}
	return ""
}
