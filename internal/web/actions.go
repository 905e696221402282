package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
	"github.com/outlast-dev/outlast/internal/store"
)

// Actions change jobs, in the same way as the command line does.
type Actions interface {
	// Cancel ends a job. Grace is the time between TERM and KILL; below zero leaves it to the job.
	Cancel(ctx context.Context, id job.ID, by string, grace time.Duration) (Result, error)
	// Resume takes up a job again that has failed or was cancelled. A [job.NotResumableError] says why it cannot.
	Resume(ctx context.Context, id job.ID, by string) (Result, error)
	// Preempt takes the machine of a job away, as a provider would.
	Preempt(ctx context.Context, id job.ID, by string) (Result, error)
	// Follow says that somebody follows the output of a job.
	Follow(ctx context.Context, id job.ID) error
}

// Result is what became of an action.
type Result string

// The results.
const (
	Accepted Result = "accepted" // written into the record, and under way
	Later    Result = "later"    // written into the record; the queue did not take it, the watch does within seconds
	Unsafe   Result = "unsafe"   // written into the record, and fewer replicas of Redis have it than are to
	TooLate  Result = "toolate"  // the job has ended, or has not: there is nothing to do
)

// actionName is what a form does.
type actionName string

const (
	doCancel  actionName = "cancel"
	doResume  actionName = "resume"
	doPreempt actionName = "preempt"
)

// action is what a page says about an action.
type action struct {
	Name    actionName
	Title   string // of the page that asks, and of the button that does it
	Ask     string
	Danger  bool
	can     func(*job.Record) bool
	tooLate string
	done    string
}

var actions = map[actionName]action{
	doCancel: {
		Name: doCancel, Title: "Cancel the job", Danger: true,
		Ask:     "Its code gets TERM, and KILL after the grace. Then its machines are ended. Tasks after this one do not start.",
		can:     func(r *job.Record) bool { return !r.Ended() && r.Cancel == nil },
		tooLate: "The job has ended, or is being cancelled already.",
		done:    "The job is being cancelled.",
	},
	doResume: {
		Name: doResume, Title: "Resume the job",
		Ask:     "It goes on with the first task that has not succeeded, under the same number, on a new machine.",
		can:     func(r *job.Record) bool { return r.Step == job.StepDone && r.Status() != job.Succeeded },
		tooLate: "Only a job that has failed or was cancelled, and whose machines are gone, can be resumed.",
		done:    "The job is being resumed.",
	},
	doPreempt: {
		Name: doPreempt, Title: "Take its machine away", Danger: true,
		Ask:     "The machine is ended as if its provider had taken it: to see that the job moves to another one and goes on. What its code has not saved is lost.",
		can:     func(r *job.Record) bool { return r.Status() == job.Running && r.Cancel == nil },
		tooLate: "Only a job that runs can lose its machine.",
		done:    "Its machine is being taken away.",
	},
}

// sentences tell on the page of a job what became of an action: the URL carries only which.
var sentences = func() map[string]string {
	out := map[string]string{}
	for name, a := range actions {
		out[string(name)+"-"+string(Accepted)] = a.done
		out[string(name)+"-"+string(Later)] = a.done + " It takes effect a little later, since the queue did not answer."
		out[string(name)+"-"+string(Unsafe)] = a.done + " It is not safe yet: too few replicas of Redis have it, and a failover now may lose it."
		out[string(name)+"-"+string(TooLate)] = a.tooLate
	}
	return out
}()

// possible lists what can be done to a job now.
func possible(rec *job.Record) []action {
	var out []action
	for _, name := range []actionName{doCancel, doResume, doPreempt} {
		if a := actions[name]; a.can(rec) {
			out = append(out, a)
		}
	}
	return out
}

// actionView is the page that asks before something is done.
type actionView struct {
	ID      job.ID
	Name    string
	Status  job.Status
	Action  action
	Grace   string
	Problem string
}

// wanted reads which action of which job is meant.
func (s *Server) wanted(r *http.Request) (job.ID, action, error) {
	id, err := jobID(r)
	if err != nil {
		return 0, action{}, err
	}
	a, known := actions[actionName(r.PathValue("action"))]
	if !known || s.cfg.Actions == nil {
		return 0, action{}, errNoPage
	}
	return id, a, nil
}

// askAction asks for confirmation. It changes nothing.
func (s *Server) askAction(w http.ResponseWriter, r *http.Request) error {
	id, a, err := s.wanted(r)
	if err != nil {
		return err
	}
	return s.showAction(w, r, http.StatusOK, actionView{ID: id, Action: a})
}

func (s *Server) showAction(w http.ResponseWriter, r *http.Request, code int, v actionView) error {
	rec, err := s.changeable(r.Context(), v.ID)
	if err != nil {
		return err
	}
	v.Name, v.Status = render.Text(rec.Name), rec.Status()
	if !v.Action.can(&rec) && v.Problem == "" {
		v.Problem = v.Action.tooLate
	}
	s.show(w, r, code, view{Page: "action", Title: fmt.Sprintf("%s · job %d", v.Action.Title, v.ID), Status: v.Status, Nav: "/", Data: v})
	return nil
}

// changeable reads the record of a job that has not left for the archive.
func (s *Server) changeable(ctx context.Context, id job.ID) (job.Record, error) {
	rec, err := s.cfg.Store.Load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		if _, err := s.all.Load(ctx, id); err == nil {
			return rec, &mistake{http.StatusConflict, "This job is in the archive. Nothing can be done to it any more."}
		}
	}
	return rec, err
}

// doAction does what a form asks for, and leads back to the job.
func (s *Server) doAction(w http.ResponseWriter, r *http.Request) error {
	id, a, err := s.wanted(r)
	if err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return badRequest("This form cannot be read.")
	}
	grace, err := parseGrace(r.PostForm.Get("grace"))
	if err != nil {
		return s.showAction(w, r, http.StatusBadRequest, actionView{ID: id, Action: a, Grace: clip(r.PostForm.Get("grace"), 20), Problem: err.Error()})
	}
	if _, err := s.changeable(r.Context(), id); err != nil && !errors.Is(err, store.ErrUnavailable) {
		return err
	}
	result, err := s.act(r.Context(), id, a.Name, grace)
	var refused *job.NotResumableError
	switch {
	case errors.As(err, &refused):
		return s.showAction(w, r, http.StatusConflict, actionView{ID: id, Action: a, Problem: render.Text(refused.Error())})
	case err != nil:
		return err
	}
	http.Redirect(w, r, fmt.Sprintf("%s?said=%s-%s", jobURL(id), a.Name, result), http.StatusSeeOther)
	return nil
}

// act does it, in the visitor's name.
func (s *Server) act(ctx context.Context, id job.ID, name actionName, grace time.Duration) (Result, error) {
	by := visitorOf(ctx).by()
	var result Result
	var err error
	switch name {
	case doCancel:
		result, err = s.cfg.Actions.Cancel(ctx, id, by, grace)
	case doResume:
		result, err = s.cfg.Actions.Resume(ctx, id, by)
	default:
		result, err = s.cfg.Actions.Preempt(ctx, id, by)
	}
	if err == nil {
		s.cfg.Log.Info().Int64("job", int64(id)).Str("by", by).Str("action", string(name)).Str("result", string(result)).Msg("asked for over HTTP")
	}
	return result, err
}

// longestGrace bounds what a form may ask for.
const longestGrace = 24 * time.Hour

// parseGrace reads a grace; no text leaves it to the job.
func parseGrace(text string) (time.Duration, error) {
	if text == "" {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longestGrace {
		return 0, badRequest("The grace is written as 30s, 5m or 1h, and is a day at most.")
	}
	return d, nil
}
