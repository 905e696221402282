package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

const (
	slotLife = 2 * time.Minute  // a slot that nobody renews and nobody gives back runs out after this
	settling = 10 * time.Second // a slot is given back soon after the commit that says it is not needed
	launched = time.Minute      // and a launch that needs longer than this renews it
	granting = 15 * time.Second // a slot that its job was given while it waited runs out after this
)

// idle are the waits of a job at the step launch that need no slot: nothing of it is on its way.
var idle = []string{"launch_slot", "backoff", "no_capacity", "quota", "secrets_locked", "controller_fault", "closing"}

// waitingHoldsNothing: the launch slots held are those of live launches, never more than there are, and none is left at the
// end. One whose driver died, or could not reach Redis, before it gave the slot back is excused until the slot runs out.
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
			if why == "" || told[slot.Job] || slot.Until < s.At || f.heldUp(slot) {
				continue
			}
			now[k] = first(since[k], s.At)
			last := i == len(f.Samples)-1 && f.Run.CalmAt != 0
			if s.At.Sub(now[k]) > settling || last {
				told[slot.Job] = true
				report(Violation{Job: slot.Job, At: s.At, Text: "it held a launch slot, and " + why, Evidence: fmt.Sprintf("%s until %s", f.clock(now[k]), f.clock(s.At)[len("at "):])})
			}
		}
		since = now
	}
}

// heldUp reports whether somebody who could have taken a slot or given it back may have been kept from that by a fault.
func (f *file) heldUp(s history.Slot) bool {
	if s.Wait == "launch_slot" { // a grant: whoever makes it tells the job, and the next tick does if that is lost
		return f.during(s.Until.Add(-granting-settling), s.Until, stopsSome)
	}
	return f.during(s.Until.Add(-slotLife-settling), s.Until.Add(-slotLife+launched), stopsSome)
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
