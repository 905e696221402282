package sim

import (
	"slices"
	"time"
)

// Capacity is how many machines a zone has room for, over time. At most one of its forms is set; N is the plainest. All are
// pure functions of the seed and of the time since the world began.
type Capacity struct {
	N int

	Steps  []Step        // from each one's time on; before the first one N holds
	Repeat time.Duration // of the steps; 0 means that the last one stays

	Markov *Markov
	Trace  *Trace

	traceFile  string // in the file of the world, until it is read
	traceScale float64
}

// Step is a change of capacity.
type Step struct {
	At time.Duration `yaml:"at"`
	N  int           `yaml:"n"`
}

// Markov is a zone that has machines or has none, at random: it begins up, and may change its mind once in a while.
type Markov struct {
	Up     int           `yaml:"up"`      // machines when up
	Down   int           `yaml:"down"`    // machines when down
	ToDown float64       `yaml:"to_down"` // probability that it goes down at a look
	ToUp   float64       `yaml:"to_up"`
	Every  time.Duration `yaml:"every"` // between looks
}

// Trace is a capacity as it was observed: Machines[i] for the i-th gap, and again from the beginning after the last one.
type Trace struct {
	Gap      time.Duration
	Machines []int
}

// change is a moment from which on a zone has room for N machines.
type change struct {
	At time.Duration
	N  int
}

// constant reports whether the capacity never changes.
func (c Capacity) constant() bool { return len(c.Steps) == 0 && c.Markov == nil && c.Trace == nil }

// At is the capacity at a time since the beginning. zone tells zones apart that share a seed.
func (c Capacity) At(seed uint64, zone string, t time.Duration) int {
	t = max(t, 0)
	switch {
	case len(c.Steps) > 0:
		return c.step(t)
	case c.Markov != nil:
		return c.Markov.at(mix(seed, zone), t)
	case c.Trace != nil:
		return c.Trace.Machines[int(t/c.Trace.Gap)%len(c.Trace.Machines)]
	default:
		return c.N
	}
}

func (c Capacity) step(t time.Duration) int {
	n := c.N
	if c.Repeat > 0 {
		if t >= c.Repeat && c.Steps[0].At > 0 { // what held at the end of the last round
			n = c.Steps[len(c.Steps)-1].N
		}
		t %= c.Repeat
	}
	for _, s := range c.Steps {
		if s.At > t {
			break
		}
		n = s.N
	}
	return n
}

func (m Markov) at(random uint64, t time.Duration) int {
	up := true
	for i := range uint64(t / m.Every) {
		draw := float64(split(random+i)>>11) / (1 << 53)
		if up {
			up = draw >= m.ToDown
		} else {
			up = draw < m.ToUp
		}
	}
	if up {
		return m.Up
	}
	return m.Down
}

// next is the first time after t at which the capacity may change.
func (c Capacity) next(t time.Duration) (at time.Duration, ok bool) {
	switch {
	case len(c.Steps) > 0:
		return c.nextStep(t)
	case c.Markov != nil:
		return t - t%c.Markov.Every + c.Markov.Every, true
	case c.Trace != nil:
		return t - t%c.Trace.Gap + c.Trace.Gap, true
	default:
		return 0, false
	}
}

func (c Capacity) nextStep(t time.Duration) (time.Duration, bool) {
	round := time.Duration(0)
	if c.Repeat > 0 {
		round = t - t%c.Repeat
	}
	for _, s := range c.Steps {
		if round+s.At > t {
			return round + s.At, true
		}
	}
	return round + c.Repeat + c.Steps[0].At, c.Repeat > 0
}

// mostChanges bounds what is looked at when nobody has looked for long; a dip before is not made up for.
const mostChanges = 1000

// changes are those after from and until to, and if from is negative the one that holds at first. If there are too many
// only the last ones are told.
func (c Capacity) changes(seed uint64, zone string, from, to time.Duration) []change {
	var all []change
	if from < 0 {
		all = append(all, change{0, c.At(seed, zone, 0)})
		from = 0
	}
	for at, ok := c.next(from); ok && at <= to; at, ok = c.next(at) {
		all = append(all, change{at, 0})
	}
	if len(all) > mostChanges {
		all = slices.Clone(all[len(all)-mostChanges:])
	}
	for i := range all {
		all[i].N = c.At(seed, zone, all[i].At)
	}
	return all
}

// mix makes a number of a seed and a name.
func mix(seed uint64, name string) uint64 {
	for _, b := range []byte(name) {
		seed = split(seed ^ uint64(b))
	}
	return split(seed)
}

// split is SplitMix64, as in Steele, Lea and Flood: "Fast Splittable Pseudorandom Number Generators" (2014).
func split(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
