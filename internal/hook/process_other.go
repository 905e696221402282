//go:build !linux

package hook

import "syscall"

// attributes gives a callback a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endRest kills what is left in a process group. Only Linux tells the environment of processes.
func endRest(group int, _ string) { _ = syscall.Kill(-group, syscall.SIGKILL) }
