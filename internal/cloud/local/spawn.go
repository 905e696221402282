package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// lockFD is the descriptor on which init finds its lock.
const lockFD = 3

// spawn starts the init of a machine, unless one was started already. The lock of the machine goes from the spawner
// to init without a moment in between, so there never are two, wherever a spawner is killed.
func (p *Provider) spawn(in instance) error {
	lock, err := os.OpenFile(in.path(fileLock), os.O_RDWR|os.O_CREATE, privateRun)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { _ = lock.Close() }() // init has its own copy
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // it is being started, or lives
	}
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	for _, file := range []string{fileInit, fileEnd} {
		if there, err := exists(in.path(file)); err != nil || there {
			return err // it has lived, or must not any more
		}
	}
	log, err := os.OpenFile(in.path(fileLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, privateRun)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer func() { _ = log.Close() }() // init has its own copy
	argv := append(slices.Clone(p.config.Machine), "init", in.dir)
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // the argv is the worker's own
	cmd.Dir = in.dir
	cmd.Env = environment(os.Environ(), in)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lock} // lands on lockFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start its init: %w", err)
	}
	go func() { _ = cmd.Wait() }() // only so that no zombie stays: how a machine ended is in its files
	return nil
}

// passed are the variables of the worker that its machines get, as a login would have them. All others stay
// behind: they may hold secrets of the worker, such as the password of its store.
var passed = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}

// environment is what the processes of a machine start with.
func environment(worker []string, in instance) []string {
	var env []string
	for _, e := range worker {
		key, _, _ := strings.Cut(e, "=")
		if slices.Contains(passed, key) || strings.HasPrefix(key, "LC_") {
			env = append(env, e)
		}
	}
	return append(env, envInstance+"="+in.ID, "OUTLAST_DEPLOYMENT="+in.Deployment)
}
