package archive

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/outlast-dev/outlast/internal/job"
)

// LogKey names the log of one node in one attempt.
type LogKey struct {
	Job     job.ID `json:"job"`
	Task    int    `json:"task"`
	Attempt int    `json:"attempt"`
	Node    int    `json:"node"` // its rank
}

func (k LogKey) String() string {
	return fmt.Sprintf("job %d, task %d, attempt %d, node %d", k.Job, k.Task, k.Attempt, k.Node)
}

// prefix is what the names of all segments of the log start with.
func (k LogKey) prefix() string {
	return fmt.Sprintf("%s%d/%d/%d/", prefixOfJob(k.Job), k.Task, k.Attempt, k.Node)
}

func prefixOfJob(id job.ID) string { return fmt.Sprintf("logs/%d/", id) }

// The kinds of objects of a log.
const (
	extData    = ".zst"
	extDropped = ".dropped" // empty: its name says it all
)

// maxLog is the highest position in a log. It comes from a machine, so it may be anything; one with more digits would make a
// name that nobody finds again.
const maxLog = 1e16 - 1

// object is the name of a segment. Positions have a fixed width so that names sort by position.
func (k LogKey) object(s segment) string {
	ext := extData
	if s.dropped {
		ext = extDropped
	}
	return fmt.Sprintf("%s%016d-%016d%s", k.prefix(), s.from, s.to, ext)
}

var objectName = regexp.MustCompile(`^logs/(\d+)/(\d+)/(\d+)/(\d+)/(\d{16})-(\d{16})(\.zst|\.dropped)$`)

// parseObject reads the name of a segment. Other names are not ours: half-written files that a killed process
// left, or whatever else somebody put into the bucket.
func parseObject(name string) (k LogKey, s segment, ok bool) {
	match := objectName.FindStringSubmatch(name)
	if match == nil {
		return LogKey{}, segment{}, false
	}
	var n [6]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(match[i+1], 10, 64); err != nil {
			return LogKey{}, segment{}, false
		}
	}
	k = LogKey{Job: job.ID(n[0]), Task: int(n[1]), Attempt: int(n[2]), Node: int(n[3])}
	s = segment{from: n[4], to: n[5], dropped: match[7] == extDropped}
	return k, s, s.from < s.to && k.object(s) == name
}
