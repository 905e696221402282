package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
)

// worker is a place in the fleet, with a process in it most of the time.
type worker struct {
	r    *round
	name string
	way  way // its own, to Redis
	url  string

	mu      sync.Mutex
	proc    *process
	version int  // which of the two binaries
	wanted  bool // it is to run: if it ends, it is started again, as an init system does
}

// restartAfter is how soon a worker is started again that has ended by itself.
const restartAfter = 300 * time.Millisecond

// termPatience is how long a worker may take to hand its jobs over.
const termPatience = 60 * time.Second

// up starts it.
func (w *worker) up() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = true
	return w.startLocked()
}

func (w *worker) startLocked() error {
	cmd := exec.Command(w.r.bin.workers[w.version], "run", "--config", w.r.config(), "--worker", w.name)
	cmd.Env, cmd.Dir = w.r.environ(w.url), w.r.home
	if w.r.opts.plant != "" {
		cmd.Env = append(cmd.Env, "OUTLAST_PLANT="+w.r.opts.plant)
	}
	p, err := start(cmd, w.log())
	if err != nil {
		return err
	}
	w.proc = p
	w.tell("started", versions[w.version])
	go w.keep(p)
	return nil
}

func (w *worker) log() string { return filepath.Join(w.r.dir, w.name+".log") }

// keep starts the worker again when a process of it has ended that nobody has ended.
func (w *worker) keep(p *process) {
	<-p.done
	if !pause(w.r.ctx, restartAfter) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proc != p || !w.wanted || w.r.ctx.Err() != nil {
		return
	}
	w.tell("ended", fmt.Sprint(p.cmd.ProcessState))
	if err := w.startLocked(); err != nil {
		w.r.trouble(err)
	}
}

func (w *worker) tell(op, detail string) {
	w.r.out.Add(history.Worker{At: now(), Name: w.name, PID: w.proc.pid(), Op: op, Version: versions[w.version], Detail: detail})
}

// down kills its process, if it has one.
func (w *worker) down() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = false
	if w.proc != nil && !w.proc.ended() {
		w.proc.kill()
		w.tell("killed", "")
	}
}

// leave lets its process hand over and end. With a version other than its own the next one is of that.
func (w *worker) leave(version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = false
	w.tell("stopped", "")
	if !w.proc.term(termPatience) {
		w.tell("killed", fmt.Sprintf("it had not ended %s after TERM", termPatience))
	} else {
		w.tell("ended", fmt.Sprint(w.proc.cmd.ProcessState))
	}
	w.version = version
}

// freeze stops its process, thaw lets it go on.
func (w *worker) freeze() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell("frozen", "")
	return w.proc.freeze()
}

func (w *worker) thaw() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell("thawed", "")
	return w.proc.thaw()
}

// startFleet starts the workers, the first one alone: it founds the deployment.
func (r *round) startFleet(ctx context.Context, n int) error {
	for i := range n {
		w := &worker{r: r, name: fmt.Sprintf("w%d", i+1)}
		var err error
		if w.way, w.url, err = r.wayFor(w.name); err != nil {
			return err
		}
		r.workers = append(r.workers, w)
		if err := w.up(); err != nil {
			return err
		}
		if i == 0 {
			if err := r.founded(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// founded waits until clients can use the deployment and know what there is to be had.
func (r *round) founded(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, redisPatience)
	defer done()
	for {
		answer := r.client.run(ctx, "plan", "-o", "json", "--infra", r.providers[0], "--", "true")
		if answer.exit == 0 {
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("the first worker does not serve: %s", answer.errs)
		}
	}
}

// environ is what a program of the product gets, and nothing of ours.
func (r *round) environ(url string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "OUTLAST_HOME=" + r.home, "OUTLAST_REDIS=" + url,
		"XDG_CONFIG_HOME=" + filepath.Join(r.home, "config"), "USER=chaos", "GORACE=halt_on_error=0",
	}
}
