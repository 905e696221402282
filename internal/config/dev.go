package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// Dev is how a client reaches a running `worker dev`. It is kept in a file that only its owner can read, since the URL may
// hold a password.
type Dev struct {
	Redis   string    `json:"redis"` // URL
	HTTP    string    `json:"http"`  // URL of the pages
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Birth tells the process from a later one with the same number; 0 where the system does not say.
	Birth uint64 `json:"birth,omitempty"`
}

// ErrNoDev says that no `worker dev` is running.
var ErrNoDev = errors.New("no worker dev is running")

func devPath(home string) string { return filepath.Join(home, "dev.json") }

// WriteDev tells clients of this process. It sets PID and Birth itself. Call [RemoveDev] at the end; a process that is
// killed leaves a file that ReadDev takes for none.
func WriteDev(home string, d Dev) error {
	birth, err := birthOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("tell clients of this worker: %w", err)
	}
	d.PID, d.Birth = os.Getpid(), birth
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("tell clients of this worker: %w", err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("tell clients of this worker: %w", err)
	}
	if err := renameio.WriteFile(devPath(home), append(text, '\n'), 0o600, renameio.IgnoreUmask()); err != nil {
		return fmt.Errorf("tell clients of this worker: %w", err)
	}
	return nil
}

// ReadDev finds the running `worker dev`. Errors wrap [ErrNoDev] if there is none, or if the one that wrote the file has
// ended.
func ReadDev(home string) (Dev, error) {
	text, err := os.ReadFile(devPath(home))
	if errors.Is(err, fs.ErrNotExist) {
		return Dev{}, ErrNoDev
	}
	if err != nil {
		return Dev{}, fmt.Errorf("find the running worker: %w", err)
	}
	var d Dev
	if err := json.Unmarshal(text, &d); err != nil {
		return Dev{}, fmt.Errorf("find the running worker: %s is damaged: %w", devPath(home), err)
	}
	birth, err := birthOf(d.PID)
	if errors.Is(err, errNoProcess) || err == nil && birth != d.Birth {
		return Dev{}, ErrNoDev
	}
	if err != nil {
		return Dev{}, fmt.Errorf("find the running worker: %w", err)
	}
	return d, nil
}

// RemoveDev removes the file of this process. That of another one stays.
func RemoveDev(home string) error {
	d, err := ReadDev(home)
	if errors.Is(err, ErrNoDev) || err == nil && d.PID != os.Getpid() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Remove(devPath(home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the notice of this worker: %w", err)
	}
	return nil
}

// errNoProcess says that no process with a number is alive.
var errNoProcess = errors.New("no such process")
