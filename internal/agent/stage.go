package agent

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The stages, in order.
const (
	stageSetup = "setup"
	stageRun   = "run"
)

// Exit codes as shells use them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
	codeSignal        = 128 // plus the signal's number
	codeTerm          = codeSignal + int(syscall.SIGTERM)
	codeKill          = codeSignal + int(syscall.SIGKILL)
)

// envNotice names the variable that holds the path of the notice file.
const envNotice = "OUTLAST_NOTICE_FILE"

// defaultPath is where programs are sought on a node whose shell gave no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// envMachine is the variable by which a machine that shares a computer with others finds its processes. They keep it,
// or what an agent has started could not be told from the rest of the computer once its parents are gone.
const envMachine = "OUTLAST_INSTANCE"

// nodeEnv selects from an environment what describes the node and its user. Everything else stays out: on a
// shared computer it may be the environment of a worker, with its credentials.
func nodeEnv(environ []string) []string {
	keep := map[string]bool{"PATH": true, "HOME": true, "USER": true, "LANG": true, "SHELL": true, "TMPDIR": true, envMachine: true}
	env := make([]string, 0, len(keep)+1)
	for _, entry := range environ {
		if name, _, ok := strings.Cut(entry, "="); ok && keep[name] {
			env = append(env, entry)
			delete(keep, name)
		}
	}
	if keep["PATH"] {
		env = append(env, "PATH="+defaultPath)
	}
	return env
}

// userEnv is the environment of the user's code: the node's, then the job's, then the secrets, then ours.
func userEnv(node []string, req StartRequest, d dir) []string {
	vars := make(map[string]string)
	for _, entry := range node {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	machine, marked := vars[envMachine]
	maps.Copy(vars, req.Env)
	maps.Copy(vars, req.Secrets)
	vars[envNotice] = d.path(fileNotice)
	vars[envMark] = markOf(d, req.Token)
	if marked { // whatever the job says about it
		vars[envMachine] = machine
	}
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	return env
}

// errNoShell says that scripts cannot be run.
var errNoShell = errors.New("neither bash nor sh is on the node's PATH")

// findShell returns the first shell of the node's PATH that runs scripts: bash if there is one.
func findShell(node []string) (string, error) {
	var path string
	for _, entry := range node {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, name := range []string{"bash", "sh"} {
		for _, folder := range filepath.SplitList(path) {
			if !filepath.IsAbs(folder) {
				continue
			}
			if found, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
				return found, nil
			}
		}
	}
	return "", errNoShell
}

// exitOf translates how a process ended.
func exitOf(stage string, ws syscall.WaitStatus) Exit {
	if ws.Signaled() {
		return Exit{Stage: stage, Code: codeSignal + int(ws.Signal()), Signal: signalName(ws.Signal())}
	}
	return Exit{Stage: stage, Code: ws.ExitStatus()}
}

// exitOfStart translates why a process could not be started.
func exitOfStart(stage string, err error) Exit {
	exit := Exit{Stage: stage, Code: codeNotExecutable, Text: fmt.Sprintf("could not be started: %v", err)}
	if errors.Is(err, os.ErrNotExist) {
		exit.Code = codeNotFound
	}
	return exit
}

// signalName returns a name such as "SIGKILL".
func signalName(sig syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
		syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
		syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
		syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGXCPU: "SIGXCPU",
		syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF", syscall.SIGIO: "SIGIO",
		syscall.SIGSYS: "SIGSYS",
	}
	if name, ok := names[sig]; ok {
		return name
	}
	return fmt.Sprintf("SIG%d", int(sig))
}
