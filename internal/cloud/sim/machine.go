package sim

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// record is a machine as it is kept: what it is, and all that has happened and will happen to it. Times are Unix ms.
type record struct {
	id       string
	job      int64
	task     int
	attempt  int
	rank     int
	zone     string
	typ      string
	spot     bool
	price    float64
	created  int64
	runs     int64  // it has booted by then
	shown    int64  // lists do not show it before
	notice   int64  // a notice came then; 0 if none
	asked    int64  // somebody asked for its end then; 0 if nobody did
	gone     int64  // nothing runs on it from then on; 0 if that is not known yet
	how      string // why
	offset   int64  // by which its clock is wrong, ms
	stepped  int64  // since when
	offsetBy int64  // by which it was wrong before
	nonce    string // of its job; "-" if it has none
}

// noNonce stands for none in a line.
const noNonce = "-"

// machineWords are how many words a line has.
const machineWords = 19

// parseRecord reads the line of a machine.
func parseRecord(id, line string) (record, error) {
	var w [machineWords]string
	rest, more := line, true
	for i := range w {
		if !more {
			return record{}, fmt.Errorf("the record of machine %s is damaged: %q", id, line)
		}
		w[i], rest, more = strings.Cut(rest, " ")
	}
	price, err := strconv.ParseFloat(w[7], 64)
	if err != nil {
		return record{}, fmt.Errorf("the record of machine %s is damaged: %q", id, line)
	}
	return record{
		id: id, job: number(w[0]), task: int(number(w[1])), attempt: int(number(w[2])), rank: int(number(w[3])), zone: w[4], typ: w[5],
		spot: w[6] == "1", price: price, created: number(w[8]), runs: number(w[9]), shown: number(w[10]), notice: number(w[11]),
		asked: number(w[12]), gone: number(w[13]), how: w[14], offset: number(w[15]), stepped: number(w[16]), offsetBy: number(w[17]),
		nonce: w[18],
	}, nil
}

// existsAt reports whether the machine has been made by a time.
func (m record) existsAt(t int64) bool { return m.created <= t }

// endings are the ways to end.
var endings = map[string]struct {
	state  cloud.State
	reason string
}{
	"c": {cloud.Preempted, "taken: the zone has less capacity"},
	"n": {cloud.Preempted, "taken on request"},
	"z": {cloud.Preempted, "taken: the zone was lost"},
	"t": {cloud.Terminated, "terminated on request"},
	"u": {cloud.Terminated, "its creation failed half way and was undone"},
}

// state is that of the machine at a time.
func (m record) state(t int64) (state cloud.State, reason string) {
	end := endings[m.how]
	switch {
	case m.gone > 0 && m.gone <= t:
		return end.state, end.reason
	case m.asked > 0 && m.asked <= t:
		return cloud.Stopping, "is being terminated"
	case m.notice > 0 && m.notice <= t:
		return cloud.Stopping, end.reason + ", with notice"
	case t < m.runs:
		return cloud.Booting, ""
	default:
		return cloud.Running, ""
	}
}

// reachable reports whether an agent answers on the machine at a time.
func (m record) reachable(t int64) bool { return t >= m.runs && (m.gone == 0 || t < m.gone) }

// clock is what the machine's clock says when it is t.
func (m record) clock(t int64) int64 {
	if t < m.stepped {
		return t + m.offsetBy
	}
	return t + m.offset
}

// node describes the machine as of a time.
func (m record) node(deployment, region string, t int64) cloud.Node {
	n := cloud.Node{
		Identity: cloud.Identity{Deployment: deployment, Job: job.ID(m.job), Task: m.task, Attempt: m.attempt},
		ID:       m.id, Rank: m.rank, Provider: name, Region: region, Zone: m.zone, Type: m.typ, Spot: m.spot, Price: m.price,
		CreatedAt: time.UnixMilli(m.created).UTC(),
	}
	if m.nonce != noNonce {
		n.Nonce = m.nonce
	}
	n.State, n.Reason = m.state(t)
	if n.State != cloud.Booting {
		n.Address = m.id // all that a Dialer needs
	}
	return n
}

// machineID names a machine of an attempt. It follows from the token, so that a repeated call means the same one. The home
// before it is what finds its record.
func machineID(home, token string, rank int) (id string, random float64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", home, token, rank))
	const bytes = 8 // 12 of 13 letters: 60 bits
	rest := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:bytes]))[:12]
	return "s" + home + "-" + rest, float64(binary.BigEndian.Uint64(sum[bytes:])>>11) / (1 << 53)
}

// homeOf is the number of the home in the name of a machine, "" if it is no such name.
func homeOf(id string) string {
	home, _, ok := strings.Cut(strings.TrimPrefix(id, "s"), "-")
	if !ok || !strings.HasPrefix(id, "s") || home == "" || strings.Trim(home, "0123456789") != "" {
		return ""
	}
	return home
}
