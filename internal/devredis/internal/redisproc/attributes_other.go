//go:build unix && !linux

package redisproc

import "syscall"

// attributes keeps a Ctrl-C at the terminal from ending the server before the worker that still needs it. Only Linux can
// tie its life to its parent's.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
