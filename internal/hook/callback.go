package hook

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outlast-dev/outlast/internal/render"
)

const (
	// CallbackLimit is how long a callback may run.
	CallbackLimit = time.Minute
	callbackGrace = 2 * time.Second // between TERM and KILL
	maxOutput     = 4 << 10         // bytes of output that are kept, the last ones, of which a line is told
)

// markVariable marks the processes of one callback, so that those which forked away are found.
const markVariable = "OUTLAST_CALLBACK"

// Variables are what a callback finds in its environment beside that of its task: SkyPilot's names, and ours.
func (m *Message) Variables(taskID, taskIDs string) map[string]string {
	n := &m.News
	return map[string]string{
		"SKYPILOT_TASK_ID": taskID, "OUTLAST_TASK_ID": taskID,
		"SKYPILOT_TASK_IDS": taskIDs, "OUTLAST_TASK_IDS": taskIDs,
		"TASK_ID": strconv.Itoa(n.Task), "OUTLAST_TASK": strconv.Itoa(n.Task),
		"JOB_ID": fmt.Sprint(m.Head.ID), "OUTLAST_JOB_ID": fmt.Sprint(m.Head.ID),
		"JOB_STATUS": n.Name(), "OUTLAST_EVENT": n.Name(),
		"CLUSTER_NAME": n.Machine, "OUTLAST_MACHINE": n.Machine,
		"TASK_NAME": m.taskName(), "OUTLAST_TASK_NAME": m.taskName(),
		"EVENT_TYPE":         "Spot", // SkyPilot sets it always
		"OUTLAST_JOB_NAME":   m.Head.Name,
		"OUTLAST_STATUS":     n.To,
		"OUTLAST_JOB_STATUS": string(n.Job),
		"OUTLAST_ATTEMPT":    strconv.Itoa(n.Attempt),
		"OUTLAST_CAUSE":      string(n.Cause.Code),
		"OUTLAST_TEXT":       m.Text(),
		"OUTLAST_MESSAGE_ID": m.ID(),
	}
}

// Callback runs a script for a message. The environment is that of the task with [Message.Variables] over it and nothing of
// this process but PATH; the folder is its own and goes with it. When it ends, or its time is up, nothing of it is left
// running. The error is an [Error].
func Callback(ctx context.Context, script string, task, own map[string]string, limit time.Duration) error {
	dir, err := os.MkdirTemp("", "outlast-callback-")
	if err != nil {
		return &Error{Text: "no folder can be made for the callback"}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, ".callback.sh") // not an argument: those are seen by every user of the computer
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return &Error{Text: "the callback cannot be written to a file"}
	}
	ctx, done := context.WithTimeout(ctx, limit)
	defer done()
	return runCallback(ctx, file, dir, callbackEnv(dir, task, own), limit)
}

// callbackEnv is the environment of a callback with its mark.
func callbackEnv(dir string, task, own map[string]string) map[string]string {
	env := map[string]string{"PATH": cmp.Or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"), "LANG": "C.UTF-8", "HOME": dir, "TMPDIR": dir}
	maps.Copy(env, task)
	maps.Copy(env, own)
	mark := make([]byte, 16)
	rand.Read(mark) // never fails
	env[markVariable] = hex.EncodeToString(mark)
	return env
}

func runCallback(ctx context.Context, file, dir string, env map[string]string, limit time.Duration) error {
	// The death of the thread that started it counts as that of the parent, so it is kept until the end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &lastBytes{}
	cmd := exec.CommandContext(ctx, "bash", file)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	for _, name := range slices.Sorted(maps.Keys(env)) {
		cmd.Env = append(cmd.Env, name+"="+env[name])
	}
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = callbackGrace // then KILL; and so long for what holds its output open after its end
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return &Error{Text: "bash cannot be started"}
	}
	err := cmd.Wait()
	endRest(cmd.Process.Pid, markVariable+"="+env[markVariable])
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil: // it ended well, though something held its output open
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &Error{Text: fmt.Sprintf("the callback ran for longer than %s and was ended", limit)}
	case ctx.Err() != nil:
		return &Error{Text: "the callback was cut off"}
	case errors.As(err, &exit):
		return &Error{Text: fmt.Sprintf("the callback ended with %s", exit) + out.line()}
	default:
		return &Error{Text: "the callback failed"}
	}
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct{ kept []byte }

func (l *lastBytes) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p...)
	if n := len(l.kept) - maxOutput; n > 0 {
		l.kept = append(l.kept[:0], l.kept[n:]...)
	}
	return len(p), nil
}

// line is the last line, ready to follow a sentence.
func (l *lastBytes) line() string {
	text := strings.TrimSpace(string(l.kept))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	if text == "" {
		return ""
	}
	return ": " + render.Text(strings.ToValidUTF8(text, ""))
}
