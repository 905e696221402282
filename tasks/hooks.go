package tasks

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"github.com/outlast-dev/outlast/internal/hook"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/spec"
	"github.com/outlast-dev/outlast/internal/store"
)

// News of jobs are told by tasks of their own, on a queue and a server of their own: a receiver that hangs delays other
// receivers at most, and decides nothing about a job. The store says which jobs have news to be told now; a chain makes
// the delivery that each must have.
//
// What the world outside is told, nobody takes back: so news wait until they are as old as no store loses ([job.Rules].Durable).
const (
	hooksEvery  = time.Second
	hooksBatch  = 50               // jobs of a shard in one tick
	hooksGrace  = 10 * time.Second // until a delivery that has not begun is made again
	hooksWide   = 16               // deliveries at a time, of one worker
	hookLasts   = 2 * time.Minute  // of deliveries to one job in a row, then others come first
	hookTimeout = 5 * time.Minute
	hookPause   = 10 * time.Minute // for what cannot be read
)

// hooks is one tick of the chain: it makes the deliveries that are due.
func (w *Worker) hooks(ctx context.Context) error {
	due, err := w.store.HooksDue(ctx, hooksBatch, w.rules.Durable, hooksGrace)
	if err != nil {
		return err
	}
	for _, h := range due {
		if err := w.queue.enqueue(ctx, "hook", hookID(h.ID, h.N), QueueHooks, hookTimeout); err != nil {
			return err // they are due again after the grace
		}
	}
	return nil
}

// handleHook tells the news of one job to those who want them.
func (w *Worker) handleHook(ctx context.Context, _ *asynq.Task) error {
	taskID, _ := asynq.GetTaskID(ctx)
	due, err := parseHookID(taskID)
	if err != nil {
		w.log.Error().Err(err).Msg("dropped a task")
		return nil
	}
	req, unreadable := w.store.Request(ctx, due.ID)
	if errors.Is(unreadable, store.ErrUnavailable) {
		return unreadable
	}
	lease := w.hookLease(&req)
	claim, err := w.store.ClaimHook(ctx, due, ulid.Make().String(), lease)
	switch {
	case errors.Is(err, store.ErrStale):
		return nil
	case err != nil:
		return err // due again when the claim ends, if it was made
	}
	t := &teller{
		w: w, claim: claim, lease: lease, req: &req, read: time.Now(), until: time.Now().Add(hookLasts),
		log: w.log.With().Int64("job", int64(due.ID)).Logger(),
	}
	if unreadable != nil {
		return t.leave(ctx, unreadable)
	}
	return t.tell(ctx)
}

// leave lets news wait that cannot be told before somebody has mended the job.
func (t *teller) leave(ctx context.Context, why error) error {
	t.log.Error().Err(why).Msg("a job cannot be read, and its news wait until it can")
	return t.release(ctx, nil, t.now().Add(hookPause))
}

// hookLease is longer than one try may take, by a claim of the watch.
func (w *Worker) hookLease(r *job.Request) time.Duration {
	for _, t := range r.Tasks {
		if t.EventCallback != "" {
			return w.callbackLimit + w.claim
		}
	}
	return hook.SendLimit + w.claim
}

// teller tells the news of one job for the length of one claim.
type teller struct {
	w     *Worker
	claim *store.Hook
	lease time.Duration
	req   *job.Request
	head  job.Head
	read  time.Time // when claim.Now was read
	until time.Time
	log   zerolog.Logger

	opening sync.Once
	secrets map[string]string
	sealed  error
}

// receiver is one of those who are told.
type receiver struct {
	name     string // in the store
	kind     string // for metrics
	title    string // for people
	schedule hook.Schedule
	wants    func(n *job.News) bool
	send     func(ctx context.Context, m *hook.Message) error
}

func (t *teller) now() job.Time { return clock{store: t.claim.Now, read: t.read}.now() }

// tell tells all receivers, beside each other, and gives the claim back.
func (t *teller) tell(ctx context.Context) error {
	rec, err := t.w.store.Load(ctx, t.claim.ID)
	switch {
	case errors.Is(err, store.ErrUnavailable):
		return err
	case err != nil:
		return t.leave(ctx, err)
	}
	t.head = rec.Head
	all := t.receivers()
	names, dues := make([]string, len(all)), make([]job.Time, len(all))
	var running sync.WaitGroup
	for i, r := range all {
		names[i] = r.name
		running.Go(func() {
			var err error
			if dues[i], err = t.tellOne(ctx, r); err != nil && !errors.Is(err, store.ErrStale) {
				t.log.Warn().Err(err).Str("receiver", r.title).Msg("cannot remember what was told; it may be told again")
			}
		})
	}
	running.Wait()
	next := job.Time(0)
	for _, due := range dues {
		if due != 0 && (next == 0 || due < next) {
			next = due
		}
	}
	return t.release(ctx, names, next)
}

// release gives the claim back, to be taken again at a time; see [Worker.hooks] for how much earlier it is due.
func (t *teller) release(ctx context.Context, names []string, due job.Time) error {
	due = max(due.Add(-t.w.rules.Durable), 0)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	err := t.w.store.ReleaseHook(ctx, t.claim, names, due)
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// receivers are all who want to hear of the job.
func (t *teller) receivers() []receiver {
	var all []receiver
	for _, task := range t.req.Tasks {
		if task.EventCallback != "" {
			all = append(all, receiver{
				name: "callback", kind: "callback", title: "the callback", schedule: t.w.schedule(hook.CallbackSchedule), send: t.call,
				wants: func(n *job.News) bool {
					return n.Task < len(t.req.Tasks) && t.req.Tasks[n.Task].EventCallback != ""
				},
			})
			break
		}
	}
	for i, h := range t.req.Webhooks {
		where := hook.PublicURL(h.URL)
		if h.URLSecret != "" {
			where = "the URL in " + h.URLSecret
		}
		all = append(all, receiver{
			name: fmt.Sprintf("webhook-%d", i), kind: "webhook", title: fmt.Sprintf("webhook %d (%s)", i+1, where), schedule: t.w.schedule(hook.WebhookSchedule),
			wants: func(n *job.News) bool { return hook.Wanted(h.Events, n) },
			send:  func(ctx context.Context, m *hook.Message) error { return t.post(ctx, h, m) },
		})
	}
	return all
}

// schedule is one with the first wait that this worker was given, if any.
func (w *Worker) schedule(s hook.Schedule) hook.Schedule {
	if w.cfg.HookFirst > 0 {
		s.First, s.Most = w.cfg.HookFirst, 8*w.cfg.HookFirst
	}
	return s
}

// tellOne tells one receiver what it has not heard, in order, and returns when it is to be tried again; zero if it has heard
// all. How far it has come is written before and after each try.
func (t *teller) tellOne(ctx context.Context, r receiver) (job.Time, error) {
	var p hook.Progress
	at, damaged := t.claim.Of(r.name, &p)
	if damaged != nil {
		t.log.Warn().Err(damaged).Msg("the state of a receiver is damaged and begins anew")
		p = hook.Progress{}
	}
	from := at
	for ; at < t.claim.End(); at++ {
		m := &hook.Message{Deployment: t.w.store.Deployment().ID, Head: t.head, News: t.claim.News[at-t.claim.Base], Seq: at}
		if m.News.Kind != "status" || !r.wants(&m.News) {
			continue
		}
		firm := max(m.News.KeptAt, m.News.At).Add(t.w.rules.Durable)
		switch {
		case t.now() < firm:
			return max(p.Due, firm), nil
		case t.now() < p.Due:
			return p.Due, nil
		case t.stops(ctx):
			return t.now(), nil // somebody goes on soon
		}
		next, moved, err := t.try(ctx, r, m, p)
		if err != nil {
			return 0, err
		}
		if p, from = next, at+1; !moved {
			return max(p.Due, 1), nil
		}
	}
	if from == at {
		return 0, nil
	}
	return 0, t.save(ctx, r, at, p, nil) // past what it does not want to hear
}

// stops reports whether it is others' turn, or this worker stops.
func (t *teller) stops(ctx context.Context) bool {
	return time.Now().After(t.until) || ctx.Err() != nil
}

// try tells one receiver one message, once. Moved says that the message is done with: delivered, or given up.
func (t *teller) try(ctx context.Context, r receiver, m *hook.Message, p hook.Progress) (next hook.Progress, moved bool, err error) {
	spread := t.spread(r.name)
	why := p.Spent(r.schedule)
	if why == nil {
		before := p
		p = p.Begun(r.schedule, t.now(), spread)
		if err := t.save(ctx, r, m.Seq, p, nil); err != nil {
			return p, false, err
		}
		t.w.at("before hook")
		why = r.send(ctx, m)
		t.w.at("after hook")
		if why != nil && ctx.Err() != nil { // this worker stops: no fault of the receiver
			return before, false, t.save(ctx, r, m.Seq, before, nil)
		}
	}
	if why == nil {
		t.w.metrics.told.WithLabelValues(r.kind, "ok").Inc()
		return hook.Progress{}, true, t.save(ctx, r, m.Seq+1, hook.Progress{}, nil)
	}
	next, note, givenUp := p.Failed(r.schedule, why, r.title+" was not told of "+m.News.Name(), t.now(), spread)
	at, result := m.Seq, "failed"
	if givenUp {
		at, result = at+1, "given_up"
	}
	t.w.metrics.told.WithLabelValues(r.kind, result).Inc()
	t.log.Debug().Str("receiver", r.title).Str("event", m.News.Name()).Int("try", p.Tries).Str("why", why.Error()).Msg("a receiver was not told")
	return next, givenUp, t.save(ctx, r, at, next, t.noted(note, m))
}

// noted is a note for the history.
func (t *teller) noted(c *job.Cause, m *hook.Message) *job.Event {
	if c == nil {
		return nil
	}
	return &job.Event{At: t.now(), Kind: "note", Task: m.News.Task, Attempt: m.News.Attempt, Cause: *c}
}

// save writes how far a receiver has come, also when this worker stops.
func (t *teller) save(ctx context.Context, r receiver, at int64, p hook.Progress, note *job.Event) error {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	return t.w.store.SaveHook(ctx, t.claim, r.name, at, p, note, t.lease)
}

// spread differs between jobs and receivers, in [0, 1).
func (t *teller) spread(receiver string) float64 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%d/%s", t.claim.ID, receiver) // never fails
	return float64(h.Sum32()) / (1 << 32)
}

// post sends a message to a webhook. What it is told of a failure holds no secret.
func (t *teller) post(ctx context.Context, h job.Webhook, m *hook.Message) error {
	to, key := h.URL, ""
	for name, value := range map[string]*string{h.URLSecret: &to, h.SignWith: &key} {
		if name == "" {
			continue
		}
		var err error
		if *value, err = t.secret(ctx, name); err != nil {
			return err
		}
	}
	err := t.w.sender.Send(ctx, to, key, m, time.Now())
	var e *hook.Error
	if !errors.As(err, &e) {
		return err
	}
	quoted := map[string]string{"url": to, "key": key} // an answer may hold what it was sent
	if u, bad := url.Parse(to); bad == nil {
		quoted["path"], quoted["query"] = u.Path, u.RawQuery
	}
	return &hook.Error{Text: seal.NewRedactor(quoted).Redact(e.Text), Permanent: e.Permanent}
}

// call runs the callback of the message's task.
func (t *teller) call(ctx context.Context, m *hook.Message) error {
	if t.w.cfg.NoCallbacks {
		return &hook.Error{Text: "the workers of this deployment run no callbacks (the setting callbacks)", Permanent: true}
	}
	in := spec.EnvInput{Request: *t.req, Job: m.Head.ID, Task: m.News.Task, Submitted: m.Head.SubmittedAt}
	env := spec.Environment(in)
	own := m.Variables(env["SKYPILOT_TASK_ID"], env["SKYPILOT_TASK_IDS"])
	return hook.Callback(ctx, t.req.Tasks[m.News.Task].EventCallback, t.req.Tasks[m.News.Task].Envs, own, t.w.callbackLimit)
}

// secret is the value of a secret of the job, of whichever task has it. Secrets are opened here and nowhere else of the
// telling, and given to no callback.
func (t *teller) secret(ctx context.Context, name string) (string, error) {
	t.opening.Do(func() {
		sealed, err := t.w.store.Secrets(ctx, t.claim.ID)
		switch {
		case err != nil:
			t.sealed = &hook.Error{Text: "the secrets cannot be read"}
		case t.w.identity == nil:
			t.sealed = &hook.Error{Text: "this worker has no key to open secrets with"}
		default:
			if t.secrets, err = t.w.identity.Open(sealed); err != nil {
				t.sealed = &hook.Error{Text: "the secrets cannot be opened"}
			}
		}
	})
	if t.sealed != nil {
		return "", t.sealed
	}
	for i := range t.req.Tasks {
		if value, ok := t.secrets[SecretKey(i, name)]; ok {
			return value, nil
		}
	}
	return "", &hook.Error{Text: "the secret " + name + " is not among those of the job", Permanent: true}
}
