package agent

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// detach starts this program as a process of its own session that keeps nothing of the caller but the given
// files, from descriptor 3 on.
func (p Program) detach(args, env []string, stdin *os.File, files ...*os.File) error {
	if len(p.Self) == 0 {
		return errors.New("the agent does not know its own program")
	}
	argv := append(append([]string{}, p.Self...), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = env, "/", files
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // matters only to a long-lived caller, which would keep a zombie
	return nil
}

// closeInherited closes what a detached process has got besides the first descriptors: if whoever started the
// starter was careless, that may be its end of a connection, which would stay open for as long as the run. What
// this process has opened itself is marked to be closed on exec, and so is told from the rest.
func closeInherited(first int) {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd < first {
			continue
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}
