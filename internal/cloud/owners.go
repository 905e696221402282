package cloud

import (
	"slices"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// JobsOf are the jobs that machines belong to, each once.
func JobsOf(nodes []Node) []job.ID {
	ids := make([]job.ID, 0, len(nodes))
	for _, n := range nodes {
		ids = append(ids, n.Job)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Owners are the records of the jobs that machines belong to, read after the machines were listed.
type Owners struct {
	Known   map[job.ID]job.Record
	Damaged map[job.ID]error // there is a record, and nobody can read it
}

// Judge is [Judge] with the record of the machine's job. A record that nobody can read is no proof that there is none: its
// job may well need the machine, and somebody has to look at the record first.
func (o Owners) Judge(n Node, now time.Time, minAge time.Duration) Verdict {
	if err := o.Damaged[n.Job]; err != nil && !n.State.Ended() {
		return Verdict{VerdictOK, err.Error()}
	}
	if r, ok := o.Known[n.Job]; ok {
		return Judge(n, &r, now, minAge)
	}
	return Judge(n, nil, now, minAge)
}
