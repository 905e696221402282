package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outlast-dev/outlast/chaos/history"
	"github.com/outlast-dev/outlast/internal/cloud"
	provider "github.com/outlast-dev/outlast/internal/cloud/local"
)

// ground is where machines of the local provider are: folders and processes of this computer.
type ground struct {
	r    *round
	root string
	take *provider.Provider // takes machines as a cloud does; what is true is read from folders and from /proc
}

// groundZones are the zones of the local provider. The last one never has a machine.
var groundZones = []string{"a", "b", "c", emptyZone}

// emptyZone is a zone of each provider that never has a machine to give.
const emptyZone = "none"

func newGround(r *round) (*ground, error) {
	g := &ground{r: r, root: filepath.Join(r.home, "local")}
	c := provider.Config{Root: g.root, Deployment: r.deployment, Machine: []string{r.bin.workers[0], "machine"}}
	for _, z := range groundZones {
		c.Zones = append(c.Zones, provider.Zone{Name: z})
	}
	var err error
	g.take, err = provider.New(c)
	return g, err
}

// box is a machine as its folder tells it.
type box struct {
	history.Machine
	dir string
}

// boxes are all machines that there ever were, as far as their folders are left.
func (g *ground) boxes() ([]box, error) {
	if g == nil {
		return nil, nil
	}
	dirs, err := filepath.Glob(filepath.Join(g.root, "*", "*", "instance.json"))
	if err != nil {
		return nil, fmt.Errorf("look for local machines: %w", err)
	}
	var all []box
	for _, file := range dirs {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		var is struct {
			ID            string
			Job           int64
			Task, Attempt int
		}
		if err == nil {
			err = json.Unmarshal(text, &is)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		b := box{dir: filepath.Dir(file)}
		b.Machine = history.Machine{
			At: now(), Provider: local, ID: is.ID, Job: is.Job, Task: is.Task, Attempt: is.Attempt, Zone: filepath.Base(filepath.Dir(b.dir)),
			State: "living", Ended: exists(b.dir, "gone"),
		}
		switch {
		case b.Ended:
			b.State = "gone"
		case exists(b.dir, "end.json"):
			b.State = "ending"
		}
		all = append(all, b)
	}
	return all, nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// living takes a machine to break: one that nothing else is done to.
func (g *ground) living(d dice) (box, error) {
	all, err := g.boxes()
	if err != nil {
		return box{}, err
	}
	all = slices.DeleteFunc(all, func(b box) bool { return b.State != "living" })
	if len(all) == 0 {
		return box{}, errTaken
	}
	return pick(d, all), nil
}

// takeMachine takes a machine as the provider of spot machines does.
func takeMachine(notice time.Duration) func(r *round, d dice) (injury, error) {
	return func(r *round, d dice) (injury, error) {
		b, err := r.ground.living(d)
		if err != nil {
			return injury{}, err
		}
		return injury{Fault: history.Fault{Target: b.ID, Zone: b.Zone, Detail: fmt.Sprintf("of job %d", b.Job)}}, r.takeBox(b, notice)
	}
}

func (r *round) takeBox(b box, notice time.Duration) error {
	r.out.Add(history.Preemption{At: now(), Provider: local, Machine: b.ID, Job: b.Job, Notice: notice})
	err := r.ground.take.Preempt(r.ctx, b.Zone, b.ID, notice)
	if cloud.ClassOf(err) != "" && !exists(b.dir, "instance.json") {
		return nil // it was removed a moment before
	}
	return err
}

// killMachine kills the machine itself, as a host does that loses its power. What runs on it is found by the next look.
func killMachine(r *round, d dice) (injury, error) {
	b, err := r.ground.living(d)
	if err != nil {
		return injury{}, err
	}
	in := injury{Fault: history.Fault{Target: b.ID, Zone: b.Zone, Detail: fmt.Sprintf("of job %d", b.Job)}}
	var init struct{ PID int }
	text, err := os.ReadFile(filepath.Join(b.dir, "init.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return in, errTaken // it does not run yet
	}
	if err == nil {
		err = json.Unmarshal(text, &init)
	}
	if err != nil {
		return in, err
	}
	if !slices.Contains(environOf(init.PID), "OUTLAST_INSTANCE="+b.ID) {
		return in, errTaken // it has ended, and another process may have its number
	}
	r.out.Add(history.Preemption{At: now(), Provider: local, Machine: b.ID, Job: b.Job})
	err = syscall.Kill(init.PID, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		err = nil
	}
	return in, err
}

// loseGround takes all machines of a zone at once.
func loseGround(r *round, d dice) (injury, error) {
	zone := pick(d, groundZones[:len(groundZones)-1])
	in := injury{Fault: history.Fault{Target: zone, Zone: zone}}
	all, err := r.ground.boxes()
	if err != nil {
		return in, err
	}
	n := 0
	for _, b := range all {
		if b.Zone != zone || b.State != "living" {
			continue
		}
		if err := r.takeBox(b, 0); err != nil {
			return in, err
		}
		n++
	}
	in.Detail = fmt.Sprintf("%d machines", n)
	return in, nil
}

// environOf is the environment that a process was started with; nothing if it has ended.
func environOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	var all []string
	for e := range bytes.SplitSeq(text, []byte{0}) {
		all = append(all, string(e))
	}
	return all
}

// processes are the processes of this round's local machines that are there now: those that carry a machine's name, and
// those of the user's code.
func (g *ground) processes() ([]history.Process, error) {
	if g == nil {
		return nil, nil
	}
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	var all []history.Process
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil {
			continue
		}
		machine, home, ours := "", false, false
		for _, e := range environOf(pid) {
			if name, ok := strings.CutPrefix(e, "OUTLAST_INSTANCE="); ok {
				machine = name
			}
			home = home || e == "HOME="+g.r.home
			ours = ours || e == "OUTLAST_DEPLOYMENT="+g.r.deployment || e == "SHARED="+g.r.shared
		}
		ours = ours || machine != "" && home // agents have nothing else of ours
		if !ours || strings.Contains(statOf(pid), ") Z ") {
			continue
		}
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		all = append(all, history.Process{
			At: now(), PID: pid, Machine: machine, Command: strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '}))),
		})
	}
	return all, nil
}

func statOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return string(text)
}

// close ends what is left of local machines. What is ended may just have started something else.
func (g *ground) close() error {
	for range 10 {
		left, err := g.processes()
		if err != nil || len(left) == 0 {
			return err
		}
		for _, p := range left {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it has ended, or ends
		}
		pause(background, 50*time.Millisecond)
	}
	return errors.New("processes of local machines cannot be ended")
}
