package hook

import (
	"math"
	"time"
)

// Schedule says when a message that could not be delivered is tried again.
type Schedule struct {
	First  time.Duration // between the first try and the second
	Factor float64       // by which each wait is longer than the one before
	Most   time.Duration // that a wait grows to
	Tries  int           // in all
}

// The schedules. A webhook is tried for about a day: 5s, 15s, 45s, ... up to four hours apart. A callback, which runs here
// and not behind somebody's outage, for a few minutes.
var (
	WebhookSchedule  = Schedule{First: 5 * time.Second, Factor: 3, Most: 4 * time.Hour, Tries: 14}
	CallbackSchedule = Schedule{First: 5 * time.Second, Factor: 3, Most: 5 * time.Minute, Tries: 5}
)

// Wait is how long to wait after a number of tries that failed. Spread is in [0, 1), and differs between messages: those of
// many jobs that failed together are not sent again together.
func (s Schedule) Wait(tries int, spread float64) time.Duration {
	d := float64(s.First) * math.Pow(s.Factor, float64(max(tries, 1)-1))
	d = min(d, float64(s.Most))
	return time.Duration(d * (0.8 + 0.4*spread))
}
