package store

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlast-dev/outlast/internal/job"
)

// telling is a new job with a webhook.
func (b *bench) telling(tb fataler) job.ID {
	tb.Helper()
	req := typical(1)
	req.Webhooks = []job.Webhook{{URL: "https://example.com/hook"}}
	return must[[]job.ID](tb)(b.Submit(b.ctx, Submission{Request: req, Sealed: []byte("sealed")}))[0]
}

// told is a claim of a job with a webhook, and the decision that it runs.
func (b *bench) told(tb fataler) (Claimed, job.Record) {
	tb.Helper()
	c := must[Claimed](tb)(b.Begin(b.ctx, b.telling(tb), job.StepLaunch, 1, "token", lease))
	next := c.Clone()
	next.Step, next.Tasks[0].Status, next.Due = job.StepWatch, job.Running, c.Now.Add(time.Hour)
	next.Events = []job.Event{
		{At: c.Now, Kind: "attempt", To: "intent"}, {At: c.Now, Kind: "status", From: "PENDING", To: "STARTING"}, {At: c.Now, Kind: "status", From: "STARTING", To: "RUNNING"},
	}
	return c, next
}

// due are the deliveries that are to be made now.
func (b *bench) due(tb fataler) []HookDue {
	tb.Helper()
	due := must[[]HookDue](tb)(b.HooksDue(b.ctx, 100, 0, grace))
	slices.SortFunc(due, func(x, y HookDue) int { return int(x.ID - y.ID) })
	return due
}

func names(news []job.News) string {
	var out []string
	for i := range news {
		out = append(out, news[i].Name())
	}
	return strings.Join(out, " ")
}

// TestNewsAreKeptWithTheCommit ensures that what is to be told is written by the commit, the submission and the resume that
// make it, in order, and delivered to each receiver from where it is.
func TestNewsAreKeptWithTheCommit(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c, next := b.told(t)
		b.commit(t, &c, next, true)
		ended := c.Clone()
		ended.Step, ended.Tasks[0].Status = job.StepDone, job.Failed
		ended.Events = []job.Event{{At: c.Now, Kind: "status", From: "RUNNING", To: "FAILED"}}
		b.commit(t, &c, ended, false)
		must[Woken](t)(b.Resume(b.ctx, c.ID, "ada"))
		if diff := cmp.Diff([]HookDue{{c.ID, 1}}, b.due(t)); diff != "" {
			t.Fatalf("due (-want +got):\n%s", diff)
		}
		if again := b.due(t); len(again) != 0 {
			t.Errorf("a delivery that is being made is due again: %v", again)
		}
		h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
		if got := names(h.News); got != "SUBMITTED STARTING STARTED FAILED SUBMITTED" || h.Base != 0 {
			t.Errorf("from %d: %s", h.Base, got)
		}
		if n := h.News[3]; !n.Final || n.Job != job.Failed || n.To != "FAILED" {
			t.Errorf("the fourth is %+v", n)
		}
		b.must(t, b.SaveHook(b.ctx, h, "a", 5, "all heard", nil, lease))
		b.must(t, b.SaveHook(b.ctx, h, "b", 3, "two left", nil, lease))
		b.must(t, b.ReleaseHook(b.ctx, h, []string{"a", "b"}, 1))
		h = must[*Hook](t)(b.ClaimHook(b.ctx, b.due(t)[0], "next", lease))
		state := ""
		if at, err := h.Of("b", &state); err != nil || h.Base != 3 || at != 3 || state != "two left" || names(h.News) != "FAILED SUBMITTED" {
			t.Errorf("from %d, b at %d (%q, %v): %s", h.Base, at, state, err, names(h.News))
		}
		b.must(t, b.SaveHook(b.ctx, h, "b", 5, "", nil, lease))
		b.must(t, b.ReleaseHook(b.ctx, h, []string{"a", "b"}, 0))
		if left := b.due(t); len(left) != 0 || b.allKeys(t)[b.keys.of(c.ID, "out")] != "" {
			t.Errorf("all was heard, and %v is left", left)
		}
	})
}

// TestJobsWithoutReceiversPayNothing ensures that such jobs have none of the keys.
func TestJobsWithoutReceiversPayNothing(t *testing.T) {
	b := newBench(t, 2)
	c, next := b.ending(t)
	next.Step = job.StepDone
	b.commit(t, &c, next, false)
	for key := range b.allKeys(t) {
		if strings.Contains(key, "out:") || strings.Contains(key, "hook") {
			t.Errorf("there is %s", key)
		}
	}
}

// TestOneTeller ensures that a delivery is begun once, that its claim runs out when its worker dies, and that who has lost
// its claim writes nothing more.
func TestOneTeller(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.telling(t)
		old := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{id, 1}, "first", lease))
		for _, due := range []HookDue{{id, 0}, {id, 1}, {id, 2}, {id, 3}} {
			if _, err := b.ClaimHook(b.ctx, due, "second", lease); !errors.Is(err, ErrStale) {
				t.Errorf("beside a claim, delivery %d: %v", due.N, err)
			}
		}
		b.pass(t, 2*lease)
		if diff := cmp.Diff([]HookDue{{id, 2}}, b.due(t)); diff != "" {
			t.Fatalf("when its claim has run out (-want +got):\n%s", diff)
		}
		if _, err := b.ClaimHook(b.ctx, HookDue{id, 1}, "second", lease); !errors.Is(err, ErrStale) {
			t.Errorf("the dead delivery was begun again: %v", err)
		}
		owner := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{id, 2}, "second", lease))
		b.unchanged(t, "the first", func() {
			if err := b.SaveHook(b.ctx, old, "a", 1, "late", &job.Event{Kind: "note"}, lease); !errors.Is(err, ErrStale) {
				t.Errorf("it saved: %v", err)
			}
			if err := b.ReleaseHook(b.ctx, old, []string{"a"}, 1); !errors.Is(err, ErrStale) {
				t.Errorf("it released: %v", err)
			}
		})
		b.must(t, b.ReleaseHook(b.ctx, owner, []string{"a"}, owner.Now.Add(time.Hour)))
	})
}

// TestNewsDuringADelivery ensures that what happens while older news are told is told next, not after their back-off.
func TestNewsDuringADelivery(t *testing.T) {
	b := newBench(t, 2)
	c, next := b.told(t)
	h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
	b.commit(t, &c, next, false)
	b.must(t, b.ReleaseHook(b.ctx, h, []string{"a"}, h.Now.Add(time.Hour)))
	if due := b.due(t); len(due) != 1 || due[0].N != 2 {
		t.Errorf("due %v", due)
	}
}

// TestNewsAreBounded ensures that a job which nobody wants to hear of any more keeps the last news only, and that their
// numbers go on.
func TestNewsAreBounded(t *testing.T) {
	b := newBench(t, 2)
	c, next := b.told(t)
	b.commit(t, &c, next, true)
	for i := range 3 {
		next := c.Clone()
		for n := range 100 {
			next.Events = append(next.Events, job.Event{Kind: "status", To: "RUNNING", Attempt: i*100 + n})
		}
		b.commit(t, &c, next, true)
	}
	h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
	if len(h.News) != 200 || h.Base != 103 || h.News[0].Attempt != 100 || h.News[199].Attempt != 299 {
		t.Errorf("%d news from %d, attempts %d to %d", len(h.News), h.Base, h.News[0].Attempt, h.News[len(h.News)-1].Attempt)
	}
}

// TestSecretsStayForTheLastNews ensures that a job which has succeeded keeps its secrets until its news are told, and no
// longer, whichever of the two comes last; one that has not keeps them.
func TestSecretsStayForTheLastNews(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		for _, tt := range []struct {
			status    job.Status
			toldFirst bool
			want      string
		}{{job.Succeeded, false, ""}, {job.Succeeded, true, ""}, {job.Failed, false, "sealed"}, {job.FailedSetup, true, "sealed"}} {
			t.Run(fmt.Sprint(tt.status, tt.toldFirst), func(t *testing.T) {
				b.again(t)
				c, next := b.told(t)
				b.commit(t, &c, next, true)
				tell := func() {
					h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
					b.must(t, b.SaveHook(b.ctx, h, "a", h.End(), "", nil, lease))
					b.must(t, b.ReleaseHook(b.ctx, h, []string{"a"}, 0))
				}
				if tt.toldFirst {
					tell()
				}
				ended := c.Clone()
				ended.Step, ended.Tasks[0].Status = job.StepDone, tt.status
				if !tt.toldFirst {
					ended.Events = []job.Event{{Kind: "status", From: "RUNNING", To: string(tt.status)}}
				}
				b.commit(t, &c, ended, false)
				if !tt.toldFirst {
					if got := must[[]byte](t)(b.Secrets(b.ctx, c.ID)); string(got) != "sealed" {
						t.Errorf("before the last news were told: %q", got)
					}
					tell()
				}
				if got := must[[]byte](t)(b.Secrets(b.ctx, c.ID)); string(got) != tt.want {
					t.Errorf("afterwards: %q", got)
				}
			})
		}
	})
}

// TestNewsOfAJobThatIsGone ensures that the news of a job that has left the store leave with it.
func TestNewsOfAJobThatIsGone(t *testing.T) {
	b := newBench(t, 2)
	id := b.telling(t)
	b.must(t, b.rdb.Del(b.ctx, b.keys.of(id, "job")).Err())
	if _, err := b.ClaimHook(b.ctx, b.due(t)[0], "mine", lease); !errors.Is(err, ErrStale) {
		t.Errorf("%v", err)
	}
	for key := range b.allKeys(t) {
		if strings.Contains(key, "out:"+strconv.Itoa(int(id))) || strings.Contains(key, "hook") {
			t.Errorf("%s is left", key)
		}
	}
}

// TestNewsWaitForTheirReceivers ensures that the news of a job of which nobody can say who wants them are kept until then.
func TestNewsWaitForTheirReceivers(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		id := b.telling(t)
		h := must[*Hook](t)(b.ClaimHook(b.ctx, b.due(t)[0], "mine", lease))
		b.must(t, b.ReleaseHook(b.ctx, h, nil, h.Now.Add(lease)))
		if due := b.due(t); len(due) != 0 {
			t.Errorf("due at once: %v", due)
		}
		b.pass(t, 2*lease)
		h = must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{id, 2}, "next", lease))
		if got := names(h.News); got != "SUBMITTED" || h.Base != 0 {
			t.Errorf("what is left is %q from %d", got, h.Base)
		}
	})
}

// TestNewsAreToldBeforeRetention ensures that a job which has ended stays until its news are told, and that none of them is
// left when it goes.
func TestNewsAreToldBeforeRetention(t *testing.T) {
	b := newBench(t, 2)
	c, next := b.told(t)
	next.Step, next.Tasks[0].Status = job.StepDone, job.Failed
	b.commit(t, &c, next, false)
	later := must[job.Time](t)(b.Now(b.ctx)).Add(time.Hour)
	if ids := must[[]job.ID](t)(b.Retirable(b.ctx, later, 0, 10)); len(ids) != 0 {
		t.Errorf("%v may leave before its news are told", ids)
	}
	h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
	b.must(t, b.SaveHook(b.ctx, h, "a", h.End(), "", nil, lease))
	b.must(t, b.ReleaseHook(b.ctx, h, []string{"a"}, 0))
	if ids := must[[]job.ID](t)(b.Retirable(b.ctx, later, 0, 10)); len(ids) != 1 {
		t.Fatalf("%v may leave", ids)
	}
	all := must[Retired](t)(b.LoadAll(b.ctx, c.ID))
	second := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 2}, "second", lease)) // which has nothing to tell
	b.unchanged(t, "retiring during a delivery", func() {
		if must[bool](t)(b.Retire(b.ctx, &all)) {
			t.Error("it is gone")
		}
	})
	b.must(t, b.ReleaseHook(b.ctx, second, []string{"a"}, 0))
	if !must[bool](t)(b.Retire(b.ctx, &all)) {
		t.Fatal("it stays")
	}
	for key := range b.allKeys(t) {
		if strings.HasSuffix(key, ":"+strconv.Itoa(int(c.ID))) || strings.Contains(key, "hook") {
			t.Errorf("%s is left", key)
		}
	}
}

// TestG5_NewsAreAsOldAsTheirCommit ensures that news tell when the store took them, not when they were decided: a commit may come
// late, and Redis loses what was written last.
func TestG5_NewsAreAsOldAsTheirCommit(t *testing.T) {
	onBoth(t, 2, func(t *testing.T, b *bench) {
		c, next := b.told(t)
		long := c.Now.Add(-time.Hour)
		for i := range next.Events {
			next.Events[i].At = long
		}
		before := must[job.Time](t)(b.Now(b.ctx))
		b.commit(t, &c, next, false)
		h := must[*Hook](t)(b.ClaimHook(b.ctx, HookDue{c.ID, 1}, "mine", lease))
		if len(h.News) != 3 {
			t.Fatalf("%d news", len(h.News))
		}
		for _, n := range h.News[1:] {
			if n.KeptAt < before || n.KeptAt > h.Now || n.At != long {
				t.Errorf("%s of %d was kept at %d", n.Name(), n.At, n.KeptAt)
			}
		}
	})
}
