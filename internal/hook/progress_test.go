package hook

import (
	"errors"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// TestProgress ensures that a message which cannot be delivered is tried as often as its schedule has it and then given up,
// that this is told twice in the history and no more, and that those behind it cost one try each until one is delivered.
func TestProgress(t *testing.T) {
	t.Parallel()
	s := Schedule{First: time.Second, Factor: 2, Most: time.Minute, Tries: 5}
	down := errors.New("down")
	now, p := job.Time(1_000_000), Progress{}
	notes, gaps := 0, []time.Duration{}
	for message := range 3 {
		for tries := 1; ; tries++ {
			p = p.Begun(s, now, 0.5)
			next, note, givenUp := p.Failed(s, down, "webhook 1 was not told of FAILED", now, 0.5)
			if note != nil {
				notes++
			}
			if p = next; givenUp {
				if want := map[int]int{0: 5, 1: 1, 2: 1}[message]; tries != want {
					t.Errorf("message %d was tried %d times, want %d", message, tries, want)
				}
				break
			}
			gaps = append(gaps, p.Due.Sub(now))
			now = p.Due
		}
	}
	if notes != 2 {
		t.Errorf("%d notes", notes)
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if i >= len(gaps) || gaps[i] != want {
			t.Fatalf("waits %v", gaps)
		}
	}
	if p != (Progress{Dead: true}) {
		t.Errorf("%+v", p)
	}
}

// TestTryThatEndsItsWorker ensures that tries of which nobody wrote down the end are counted, and come to an end.
func TestTryThatEndsItsWorker(t *testing.T) {
	t.Parallel()
	p, n := Progress{}, 0
	for ; n < 100; n++ {
		if p.Spent(CallbackSchedule) != nil {
			break
		}
		p = p.Begun(CallbackSchedule, 1, 0)
	}
	if n != CallbackSchedule.Tries {
		t.Errorf("%d tries", n)
	}
	if _, note, givenUp := p.Failed(CallbackSchedule, p.Spent(CallbackSchedule), "the callback was not told of FAILED", 1, 0); !givenUp || note == nil || note.Evidence == "" {
		t.Errorf("given up %t, %+v", givenUp, note)
	}
}

// TestPermanentFailure ensures that what can never work is not tried again.
func TestPermanentFailure(t *testing.T) {
	t.Parallel()
	p := Progress{}.Begun(WebhookSchedule, 1, 0)
	_, note, givenUp := p.Failed(WebhookSchedule, &Error{Text: "no URL", Permanent: true}, "webhook 1 was not told of FAILED", 1, 0)
	if !givenUp || note == nil || note.Code != job.CodeNotTold || note.Text != "webhook 1 was not told of FAILED, which is given up after one try; what follows is tried once each" {
		t.Errorf("given up %t, %+v", givenUp, note)
	}
}
