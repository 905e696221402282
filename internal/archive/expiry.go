package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"gocloud.dev/blob"

	"github.com/outlast-dev/outlast/internal/job"
)

// LogRule says what decides when the logs of a job go.
type LogRule string

// The rules.
const (
	RuleUsual LogRule = "usual" // the deployment's retention, from the job's end
	RuleOwn   LogRule = "own"   // the job's own, which says when
	RuleKeep  LogRule = "keep"  // the job's own: never
)

// Expiry is a mark in the archive that the logs of a job are to go one day. It is an object without content, whose name
// says all, so that a list of names is enough to find those whose time has come:
//
//	expiry/usual/<hour>/<job>-<bytes>
type Expiry struct {
	Rule  LogRule
	Hour  job.Time // the hour in which the job ended; for RuleOwn that in which its logs are due
	Job   job.ID
	Bytes int64 // that its logs take in the archive
}

const hourFormat = "2006010215"

// NewExpiry is the mark of a job. Of at only the hour counts.
func NewExpiry(rule LogRule, at job.Time, id job.ID, size int64) Expiry {
	return Expiry{Rule: rule, Hour: job.TimeOf(at.Std().UTC().Truncate(time.Hour)), Job: id, Bytes: size}
}

func (e Expiry) object() string {
	return fmt.Sprintf("expiry/%s/%s/%d-%d", e.Rule, e.Hour.Std().UTC().Format(hourFormat), e.Job, e.Bytes)
}

var expiryName = regexp.MustCompile(`^expiry/(usual|own|keep)/(\d{10})/(\d+)-(\d+)$`)

func parseExpiry(name string) (Expiry, bool) {
	m := expiryName.FindStringSubmatch(name)
	if m == nil {
		return Expiry{}, false
	}
	hour, err1 := time.Parse(hourFormat, m[2])
	id, err2 := strconv.ParseInt(m[3], 10, 64)
	size, err3 := strconv.ParseInt(m[4], 10, 64)
	e := Expiry{Rule: LogRule(m[1]), Hour: job.TimeOf(hour), Job: job.ID(id), Bytes: size}
	return e, err1 == nil && err2 == nil && err3 == nil && e.object() == name
}

// PutExpiry writes a mark.
func (a *Archive) PutExpiry(ctx context.Context, e Expiry) error {
	return a.put(ctx, e.object(), "text/plain", func(*blob.Writer) error { return nil })
}

// RemoveExpiry deletes a mark.
func (a *Archive) RemoveExpiry(ctx context.Context, e Expiry) error { return a.remove(ctx, e.object()) }

// Expiries calls f for the marks of a rule, oldest first, until it returns false.
func (a *Archive) Expiries(ctx context.Context, rule LogRule, f func(Expiry) bool) error {
	return a.each(ctx, &blob.ListOptions{Prefix: "expiry/" + string(rule) + "/"}, func(o *blob.ListObject) (bool, error) {
		e, ok := parseExpiry(o.Key)
		return !ok || f(e), nil
	})
}

// LogBytes is how many bytes the logs of a job take in the archive, with those of others that ever had its id.
func (a *Archive) LogBytes(ctx context.Context, id job.ID) (int64, error) {
	var n int64
	err := a.each(ctx, &blob.ListOptions{Prefix: prefixOfJob(id)}, func(o *blob.ListObject) (bool, error) {
		n += o.Size
		return true, nil
	})
	return n, err
}

// Notice stands in the place of logs that were removed.
type Notice struct {
	Job   job.ID        `json:"job"`
	At    job.Time      `json:"at"`
	After time.Duration `json:"after,omitempty"` // the age that logs may have; zero if they went for their size
	Limit int64         `json:"limit,omitempty"` // bytes that all logs together may take
}

// String is the line that is shown where the logs were.
func (n Notice) String() string {
	day := n.At.Std().UTC().Format(time.DateOnly)
	if n.After > 0 {
		return fmt.Sprintf("[outlast: the logs of this job were removed on %s, %s after its end]", day, days(n.After))
	}
	return fmt.Sprintf("[outlast: the logs of this job were removed on %s: those of all jobs took more than %d bytes]", day, n.Limit)
}

func days(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "1 day"
	case d >= day && d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	default:
		return d.String()
	}
}

func noticeObject(id job.ID) string { return fmt.Sprintf("notices/%d.json", id) }

// PutNotice writes a notice. The logs are removed after it, so that nobody finds neither.
func (a *Archive) PutNotice(ctx context.Context, n Notice) error {
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the notice of job %d: %w", n.Job, err)
	}
	return a.put(ctx, noticeObject(n.Job), "application/json", func(w *blob.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// Notice reads why the logs of a job were removed. [ErrNotFound] says that they were not.
func (a *Archive) Notice(ctx context.Context, id job.ID) (Notice, error) {
	var n Notice
	text, err := a.bucket.ReadAll(ctx, noticeObject(id))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, a.failed(err, "read %s", noticeObject(id))
	}
	return n, nil
}

// RemoveNotice deletes the notice of a job.
func (a *Archive) RemoveNotice(ctx context.Context, id job.ID) error {
	return a.remove(ctx, noticeObject(id))
}
