package redisproc

import "syscall"

// attributes makes the server end with its parent, and keeps a Ctrl-C at the terminal from ending it before
// the worker that still needs it: it gets a process group of its own.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
