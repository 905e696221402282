package local

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// The files of a machine; see the package comment.
const (
	fileInstance = "instance.json"
	fileLock     = "lock"
	fileInit     = "init.json"
	fileSocket   = "sock"
	fileNotice   = "notice.json"
	fileEnd      = "end.json"
	fileGone     = "gone"
	fileLog      = "init.log"
	dirAgent     = "agent"
	dirHome      = "home"
)

const (
	private    = 0o700 // machines are of no concern to other users of this computer
	privateRun = 0o600
)

// instance is what instance.json says: everything about a machine that never changes.
type instance struct {
	cloud.Identity
	ID        string        `json:"id"`
	Rank      int           `json:"rank"`
	Token     string        `json:"token"`
	Name      string        `json:"name,omitempty"` // untrusted, for people
	Offer     job.Offer     `json:"offer"`
	Boot      time.Duration `json:"boot"`
	CreatedAt time.Time     `json:"created_at"`

	dir string
}

// end is what end.json says: how a machine has to end.
type end struct {
	State  cloud.State `json:"state"` // Preempted or Terminated
	Reason string      `json:"reason"`
	At     time.Time   `json:"at"`
}

// instanceID names the machine of one rank of a token. It is the same for every creator, so that they meet in
// one directory, and belongs to this root only, since processes of all roots share one process table.
func instanceID(root, zone, deployment, token string, rank int) string {
	sum := sha256.Sum256([]byte(root + "\x00" + deployment + "\x00" + token + "\x00" + strconv.Itoa(rank)))
	return zone + "-" + hex.EncodeToString(sum[:8])
}

// openInstance reads the machine in dir. The error wraps os.ErrNotExist if there is none.
func openInstance(dir string) (instance, error) {
	var in instance
	if err := readFile(dir, fileInstance, &in); err != nil {
		return instance{}, err
	}
	in.dir = dir
	if in.ID != filepath.Base(dir) {
		return instance{}, fmt.Errorf("%s: %w: it is about another machine", dir, errCorrupt)
	}
	return in, nil
}

func (in instance) path(file string) string { return filepath.Join(in.dir, file) }

// finish records how the machine has to end. The first word counts: a later one is dropped.
func (in instance) finish(e end) error { return writeOnce(in.dir, fileEnd, e) }

// bury records that nothing of the machine runs any more and removes all but that knowledge. The order matters:
// a machine without its other files is one that has ended.
func (in instance) bury() error {
	if err := writeOnce(in.dir, fileGone, struct{}{}); err != nil {
		return err
	}
	var errs []error
	for _, f := range []string{dirAgent, dirHome, fileSocket, fileInit, fileNotice, fileLog, fileLock} {
		errs = append(errs, os.RemoveAll(in.path(f)))
	}
	return errors.Join(errs...)
}

// facts gathers what judge needs to know.
func (in instance) facts(boot string, now time.Time) (facts, error) {
	f := facts{now: now, created: in.CreatedAt}
	var err error
	if f.end, err = readOptional[end](in.dir, fileEnd); err != nil {
		return f, err
	}
	if f.gone, err = exists(in.path(fileGone)); err != nil || f.gone {
		return f, err
	}
	if f.notice, err = readOptional[agent.Notice](in.dir, fileNotice); err != nil {
		return f, err
	}
	if f.booted, err = exists(in.path(fileSocket)); err != nil {
		return f, err
	}
	id, err := readOptional[identity](in.dir, fileInit)
	if err != nil {
		return f, err
	}
	if id == nil {
		f.init = initAbsent
		return f, nil
	}
	f.init, err = initStateOf(*id, boot)
	return f, err
}

func initStateOf(id identity, boot string) (initState, error) {
	_, alive, err := id.find(boot)
	switch {
	case err != nil:
		return "", err
	case alive:
		return initAlive, nil
	case id.Boot != boot:
		return initRebooted, nil
	default:
		return initDead, nil
	}
}

// initID is the process of the machine's init, or the zero identity if it has none.
func (in instance) initID() (identity, error) {
	id, err := readOptional[identity](in.dir, fileInit)
	if err != nil || id == nil {
		return identity{}, err
	}
	return *id, nil
}

// node is the machine as its provider shows it.
func (in instance) node(v verdict) cloud.Node {
	return cloud.Node{
		Identity: in.Identity, ID: in.ID, Rank: in.Rank,
		Provider: name, Region: in.Offer.Region, Zone: in.Offer.Zone, Type: in.Offer.Type,
		Spot: in.Offer.Spot, Price: in.Offer.Price,
		State: v.state, Reason: v.reason, Address: in.dir, CreatedAt: in.CreatedAt,
	}
}

// errCorrupt says that a file holds something else than what this package writes.
var errCorrupt = errors.New("not a file of a local machine")

func readFile(dir, file string, v any) error {
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("local machine: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w: %w", path, errCorrupt, err)
	}
	return nil
}

// readOptional returns nil if the file is not there.
func readOptional[T any](dir, file string) (*T, error) {
	v := new(T)
	err := readFile(dir, file, v)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return v, nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	default:
		return false, fmt.Errorf("local machine: %w", err)
	}
}

// writeFile writes a file that only its one writer ever changes.
func writeFile(dir, file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	if err := renameio.WriteFile(filepath.Join(dir, file), append(text, '\n'), privateRun, renameio.WithTempDir(dir)); err != nil {
		return fmt.Errorf("local machine: %w", err)
	}
	return nil
}

// writeOnce writes a file whole, unless somebody has written it already.
func writeOnce(dir, file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fmt.Errorf("local machine: %w", err)
	}
	_, errWrite := tmp.Write(append(text, '\n'))
	err = errors.Join(errWrite, tmp.Close())
	if err == nil {
		if err = os.Link(tmp.Name(), filepath.Join(dir, file)); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err := errors.Join(err, os.Remove(tmp.Name())); err != nil {
		return fmt.Errorf("local machine: %w", err)
	}
	return nil
}
