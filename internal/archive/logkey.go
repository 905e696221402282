package archive

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/outlast-dev/outlast/internal/job"
)

// LogKey names the log of one node in one attempt. Of a job that the store has lost, whose id another one has got, there may
// be a log beside it: only the nonce tells them apart.
type LogKey struct {
	Job     job.ID `json:"job"`
	Nonce   string `json:"-"` // of the job; empty for logs of before there were nonces
	Task    int    `json:"task"`
	Attempt int    `json:"attempt"`
	Node    int    `json:"node"` // its rank
}

// LogOf names the log of an attempt of a job.
func LogOf(h *job.Head, task, attempt int) LogKey {
	return LogKey{Job: h.ID, Nonce: h.Nonce, Task: task, Attempt: attempt}
}

func (k LogKey) String() string {
	return fmt.Sprintf("job %d, task %d, attempt %d, node %d", k.Job, k.Task, k.Attempt, k.Node)
}

// prefix is what the names of all segments of the log start with.
func (k LogKey) prefix() string {
	return fmt.Sprintf("%s%s%d/%d/%d/", prefixOfJob(k.Job), prefixOfNonce(k.Nonce), k.Task, k.Attempt, k.Node)
}

func prefixOfNonce(nonce string) string {
	if nonce == "" {
		return ""
	}
	return "n" + nonce + "/"
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

var objectName = regexp.MustCompile(`^logs/(\d+)/(?:n([a-z0-9]+)/)?(\d+)/(\d+)/(\d+)/(\d{16})-(\d{16})(\.zst|\.dropped)$`)

// parseObject reads the name of a segment. Other names are not ours: half-written files that a killed process
// left, or whatever else somebody put into the bucket.
func parseObject(name string) (k LogKey, s segment, ok bool) {
	match := objectName.FindStringSubmatch(name)
	if match == nil {
		return LogKey{}, segment{}, false
	}
	var n [6]int64
	for i, digits := range append(match[1:2:2], match[3:8]...) {
		var err error
		if n[i], err = strconv.ParseInt(digits, 10, 64); err != nil {
			return LogKey{}, segment{}, false
		}
	}
	k = LogKey{Job: job.ID(n[0]), Nonce: match[2], Task: int(n[1]), Attempt: int(n[2]), Node: int(n[3])}
	s = segment{from: n[4], to: n[5], dropped: match[8] == extDropped}
	return k, s, s.from < s.to && k.object(s) == name
}
