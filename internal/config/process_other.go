//go:build unix && !linux

package config

import (
	"errors"
	"syscall"
)

// birthOf returns 0 for a process that is alive, else errNoProcess.
func birthOf(pid int) (uint64, error) {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return 0, errNoProcess
	}
	return 0, nil
}
