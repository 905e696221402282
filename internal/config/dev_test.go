package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAClientFindsTheRunningWorker(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "home")
	if _, err := ReadDev(home); !errors.Is(err, ErrNoDev) {
		t.Errorf("before: %v, want ErrNoDev", err)
	}
	want := Dev{Redis: "redis://:pw@127.0.0.1:1", HTTP: "http://127.0.0.1:2", Started: time.Unix(5, 0).UTC()}
	if err := WriteDev(home, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadDev(home)
	if err != nil {
		t.Fatal(err)
	}
	want.PID, want.Birth = os.Getpid(), got.Birth
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(devPath(home))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file holds a password and has the mode %v (%v)", info.Mode(), err)
	}
	for range 2 {
		if err := RemoveDev(home); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadDev(home); !errors.Is(err, ErrNoDev) {
		t.Errorf("after: %v, want ErrNoDev", err)
	}
}

// What a killed worker left is no worker, also when another process has its number by now.
func TestADeadWorkerIsNone(t *testing.T) {
	t.Parallel()
	birth, err := birthOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Dev{
		"another process with its number": {PID: os.Getpid(), Birth: birth + 1},
		"no process":                      {PID: 1 << 30},
	} {
		home := t.TempDir()
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(devPath(home), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDev(home); !errors.Is(err, ErrNoDev) {
			t.Errorf("%s: %v, want ErrNoDev", name, err)
		}
		if err := RemoveDev(home); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(devPath(home), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDev(home); err == nil || errors.Is(err, ErrNoDev) {
		t.Errorf("got %v", err)
	}
}
