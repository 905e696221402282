package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of an attempt's directory. The package comment says what each is for.
const (
	fileLock      = "lock"
	fileClaimed   = "claimed"
	fileLaunching = "launching"
	fileRun       = "run.json"
	fileLog       = "out.log"
	fileGap       = "out.log.gap"   // what of the log was dropped
	fileMarks     = "out.log.marks" // when it was written
	fileLogLock   = "out.log.lock"  // held while the log of a run without a supervisor is kept short
	fileExit      = "exit.json"
	fileStop      = "stop.json"
	fileSweep     = "sweep.lock" // held while processes without a supervisor are being ended
	fileNotice    = "notice.json"
	fileLease     = "lease"
	dirWork       = "workdir"
	fileWorkHash  = "workdir.sha256"
	fileWorkLock  = "workdir.lock" // held while workdir is exchanged
)

// claimRecord binds a directory to an attempt.
type claimRecord struct {
	Token string `json:"token"`
}

// launchRecord is evidence that the user's code may have been started.
type launchRecord struct {
	Token      string `json:"token"`
	Mark       string `json:"mark"` // value of OUTLAST_RUN in the environment of every process of the run
	Boot       string `json:"boot"`
	Supervisor int    `json:"supervisor"`
	LogLimit   int64  `json:"log_limit,omitempty"` // for whoever polls when the supervisor is dead
}

// runRecord is the main process of the stage that runs now.
type runRecord struct {
	Stage string `json:"stage"`
	PID   int    `json:"pid"`
	// Ticks is the start time of PID in clock ticks since boot: it tells it from a later process of that number.
	Ticks      uint64 `json:"ticks"`
	Boot       string `json:"boot"`
	Supervisor int    `json:"supervisor"`
	Token      string `json:"token"`
	Started    int64  `json:"started"` // Unix ms; of the first stage
}

// exitRecord is how a run ended.
type exitRecord struct {
	Exit
	Token   string `json:"token"`
	Started int64  `json:"started"`
	Ended   int64  `json:"ended"`
}

// stopRecord is the wish that a run ends.
type stopRecord struct {
	GraceMillis int64 `json:"grace_ms"`
}

// dir is the directory of one attempt on a node; absolute and clean.
type dir string

func (d dir) path(name string) string { return filepath.Join(string(d), name) }

func (d dir) make() error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("make the attempt's directory: %w", err)
	}
	return nil
}

func (d dir) has(name string) bool {
	_, err := os.Lstat(d.path(name))
	return err == nil
}

// maxRecord bounds what is read of a record: the user's code could have written anything there.
const maxRecord = 64 << 10

// read decodes a record and reports whether there was a whole one. A record that was cut off by a crash of the
// machine counts as none.
func (d dir) read(name string, v any) bool {
	text, err := readBounded(d.path(name), maxRecord)
	return err == nil && json.Unmarshal(text, v) == nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// replace makes a record whole or not at all. It does not survive a crash of the machine for certain.
func (d dir) replace(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	f, err := os.CreateTemp(filepath.Dir(d.path(name)), filepath.Base(name)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already if all went well
	_, err = f.Write(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(f.Name(), d.path(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// create makes a record that must not exist yet, and returns when it would survive a crash of the machine.
func (d dir) create(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	f, err := os.OpenFile(d.path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = f.Write(text)
	if err := finish(f, err); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	return d.sync()
}

// A record for which room was kept can be written when the user's code has filled the disk.

// recordRoom is more than a run or an exit record ever takes, in bytes.
const recordRoom = 4 << 10

// room is the file that becomes the record of that name; a record that is written in every stage has a room for each.
func (d dir) room(name, stage string) string { return d.path(name) + stage + ".room" }

// reserve keeps room for a record.
func (d dir) reserve(name, stage string) error {
	if err := os.WriteFile(d.room(name, stage), bytes.Repeat([]byte{' '}, recordRoom), 0o600); err != nil {
		return fmt.Errorf("reserve room for %s: %w", name, err)
	}
	return nil
}

// fill puts a record into the room that was kept for it, and then in place: whole, and durable.
func (d dir) fill(name, stage string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if pad := recordRoom - len(text); pad > 0 { // overwrites every byte of the room; blanks after JSON mean nothing
		text = append(text, bytes.Repeat([]byte{' '}, pad)...)
	}
	f, err := os.OpenFile(d.room(name, stage), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	_, err = f.WriteAt(text, 0)
	if err := finish(f, err); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(d.room(name, stage), d.path(name)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.sync()
}

// finish makes a file durable and closes it, and returns the first error: err if there was one before.
func finish(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// sync makes the names in the directory durable.
func (d dir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return fmt.Errorf("sync the attempt's directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the attempt's directory: %w", err)
	}
	return nil
}
