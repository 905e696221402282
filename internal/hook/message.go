package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// Message is one piece of news with what is needed to tell it.
type Message struct {
	Deployment string
	Head       job.Head
	News       job.News
	Seq        int64 // among the news of the job: 0, 1, 2, ...
}

// ID names a message. It is the same whenever the message is told again, so that a receiver can drop what it has.
func (m *Message) ID() string {
	return fmt.Sprintf("msg_%s_%d_%d", m.Deployment, m.Head.ID, m.Seq)
}

// Wanted reports whether a webhook that asks for those events is told this one. They are statuses or SkyPilot's names of
// events, in any case of letters; none means all. "failed" stands for every kind of failure.
func Wanted(events []string, n *job.News) bool {
	if len(events) == 0 {
		return true
	}
	for _, e := range events {
		if strings.EqualFold(e, n.To) || strings.EqualFold(e, n.Name()) {
			return true
		}
	}
	return false
}

// body is what a webhook is sent. Fields are only ever added.
type body struct {
	Type       string     `json:"type"`      // SkyPilot's name of the event in lower case, such as "recovered"
	Timestamp  time.Time  `json:"timestamp"` // when it happened
	Text       string     `json:"text"`      // the same as a sentence, for chats that show it
	Event      string     `json:"event"`     // SkyPilot's name
	Status     job.Status `json:"status"`    // of the task
	From       job.Status `json:"from,omitempty"`
	Cause      *job.Cause `json:"cause,omitempty"`
	Deployment string     `json:"deployment"`
	Job        bodyJob    `json:"job"`
	Task       bodyTask   `json:"task"`
}

type bodyJob struct {
	ID          job.ID     `json:"id"`
	Name        string     `json:"name"`
	User        string     `json:"user,omitempty"`
	Status      job.Status `json:"status"`
	Final       bool       `json:"final"` // the job has ended
	SubmittedAt time.Time  `json:"submitted_at"`
	Tasks       int        `json:"tasks"`
}

type bodyTask struct {
	Index      int        `json:"index"`
	Name       string     `json:"name,omitempty"`
	Attempt    int        `json:"attempt"`
	Recoveries int        `json:"recoveries"`
	StartedAt  *time.Time `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`
	Seconds    float64    `json:"duration_s"` // of user run time
	Where      string     `json:"where,omitempty"`
}

// Body is the JSON that a webhook is sent.
func (m *Message) Body() ([]byte, error) {
	n := &m.News
	b := body{
		Type: strings.ToLower(n.Name()), Timestamp: utc(n.At), Text: m.Text(), Event: n.Name(),
		Status: job.Status(n.To), From: job.Status(n.From), Deployment: m.Deployment,
		Job: bodyJob{
			ID: m.Head.ID, Name: m.Head.Name, User: m.Head.User, Status: n.Job, Final: n.Final,
			SubmittedAt: utc(m.Head.SubmittedAt), Tasks: len(m.Head.Tasks),
		},
		Task: bodyTask{
			Index: n.Task, Name: m.taskName(), Attempt: n.Attempt, Recoveries: n.Recoveries,
			StartedAt: utcOrNil(n.StartedAt), EndedAt: utcOrNil(n.EndedAt), Seconds: float64(n.RunMS) / 1000, Where: n.Where,
		},
	}
	if !n.Cause.IsZero() {
		b.Cause = &n.Cause
	}
	out, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write the body of a webhook: %w", err)
	}
	return out, nil
}

// sentences say what happened, after the name of the job.
var sentences = map[string]string{
	"SUBMITTED":  "was submitted",
	"STARTING":   "is getting a machine",
	"STARTED":    "runs",
	"RECOVERING": "is being recovered",
	"RECOVERED":  "runs again",
	"SUCCEEDED":  "has succeeded",
	"FAILED":     "has failed",
	"CANCELLING": "is being cancelled",
	"CANCELLED":  "was cancelled",
}

// Text tells the news in a sentence: "job 7 train, task 2 of 3, has failed: the user's code ended with exit code 1".
func (m *Message) Text() string {
	n := &m.News
	text := fmt.Sprintf("job %d %s", m.Head.ID, m.Head.Name)
	if len(m.Head.Tasks) > 1 {
		text += fmt.Sprintf(", task %d of %d,", n.Task+1, len(m.Head.Tasks))
	}
	what, known := sentences[n.Name()]
	if !known {
		what = "is " + n.To
	}
	text += " " + what
	if n.Where != "" && (n.Name() == "STARTED" || n.Name() == "RECOVERED") {
		text += " on " + n.Where
	}
	if n.Cause.Text != "" && n.Cause.Text != "submitted" {
		text += ": " + n.Cause.Text
	}
	return render.Text(text)
}

func (m *Message) taskName() string {
	if m.News.Task < 0 || m.News.Task >= len(m.Head.Tasks) {
		return ""
	}
	return m.Head.Tasks[m.News.Task].Name
}

func utc(t job.Time) time.Time { return t.Std().UTC() }

func utcOrNil(t job.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	at := utc(t)
	return &at
}
