package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// maxRequest bounds a start request. The kernel allows a new process about 6 MB of environment.
const maxRequest = 16 << 20

// minLogLimit is the least that a log may be limited to: below it there would be nothing to see.
const minLogLimit = 64 << 10

// ReadStart decodes a start request and refuses what can not be carried out, for others who answer as an agent does.
func ReadStart(r io.Reader) (StartRequest, error) { return readRequest(r) }

// readRequest decodes a start request. Its errors say nothing of what was in it: that may be a secret.
func readRequest(r io.Reader) (StartRequest, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxRequest+1))
	if err != nil {
		return StartRequest{}, fmt.Errorf("read the start request: %w", err)
	}
	if len(text) > maxRequest {
		return StartRequest{}, fmt.Errorf("start request is larger than %d bytes", maxRequest)
	}
	var req StartRequest
	if err := json.Unmarshal(text, &req); err != nil {
		return StartRequest{}, errors.New("start request is no whole JSON document of the expected form")
	}
	return req, req.validate()
}

// validate refuses what can not be carried out.
func (r StartRequest) validate() error {
	if r.Token == "" {
		return errors.New("start request has no token")
	}
	for _, set := range []map[string]string{r.Env, r.Secrets} {
		for name, value := range set {
			switch {
			case name == "" || strings.ContainsAny(name, "=\x00"):
				return fmt.Errorf("start request: %q can not be the name of a variable", name)
			case strings.ContainsRune(value, 0):
				return fmt.Errorf("start request: the value of %q holds a zero byte", name)
			}
		}
	}
	if _, known := noticeSignals[r.NoticeSignal]; !known {
		return errors.New("start request: the signal of a notice must be TERM, INT, HUP, USR1, USR2 or none")
	}
	if strings.ContainsRune(r.Setup+r.Run+r.NoticeRun, 0) {
		return errors.New("start request: a script holds a zero byte")
	}
	if r.IdleSeconds < 0 || r.LeaseSeconds < 0 {
		return errors.New("start request: seconds are negative")
	}
	if r.LogLimit != 0 && r.LogLimit < minLogLimit {
		return fmt.Errorf("start request: a limit of %d bytes for the log is less than %d", r.LogLimit, minLogLimit)
	}
	return nil
}

const (
	// startPatience is how long a start waits for another one that holds the lock to get somewhere. Normally that
	// takes milliseconds; after it the answer is Starting, which is true.
	startPatience = 10 * time.Second
	// readyPatience is how long a start waits for its own supervisor, which may wait for a slow disk.
	readyPatience = 30 * time.Second
)

// start starts a run, or finds out that it was started. It returns when the first stage runs.
func (p Program) start(d dir, stdin io.Reader) (Status, error) {
	req, err := readRequest(stdin)
	if err != nil {
		return Status{}, err
	}
	if err := d.make(); err != nil {
		return Status{}, err
	}
	giveUp := time.Now().Add(startPatience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		st, err := p.tryStart(d, req)
		if err != nil {
			return Status{}, err
		}
		if st.Token != "" && st.Token != req.Token {
			return Status{}, errors.New("this directory belongs to another attempt")
		}
		// Starting may come to nothing, if whoever has the lock is being killed: then it is this one's turn.
		unsettled := st.Already && (st.State == Starting || st.State == Absent)
		if !unsettled || time.Now().After(giveUp) {
			return st, nil
		}
		time.Sleep(pause)
	}
}

// tryStart starts a run unless somebody else holds the lock or there is nothing to start any more; then the
// status says Already.
func (p Program) tryStart(d dir, req StartRequest) (Status, error) {
	var lock *os.File
	var err error
	if !d.has(fileLaunching) { // else there is nothing to lock for, and holding it would look like a supervisor
		if lock, err = tryLock(d.path(fileLock)); err != nil {
			return Status{}, err
		}
	}
	if lock == nil {
		st, err := d.look()
		st.Already = true
		return st, err
	}
	defer lock.Close()
	f := d.facts()
	st, err := f.judgeUnlocked()
	if err != nil {
		return Status{}, err
	}
	if st.State != Absent {
		st.Already = f.launch != nil || f.exit != nil
		return st, nil
	}
	if f.claim != nil && f.claim.Token != req.Token {
		return st, nil // refused by the caller
	}
	if err := d.claim(f, req.Token); err != nil {
		return Status{}, err
	}
	if err := p.launch(d, req, lock); err != nil {
		return Status{}, err
	}
	return d.look()
}

// claim binds the directory to the attempt. The caller has the lock, and nothing was launched: whoever claimed it
// before is dead, and a record that this one left half written may be replaced.
func (d dir) claim(f facts, token string) error {
	if f.claim != nil {
		return nil
	}
	if err := os.Remove(d.path(fileClaimed)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("claim the directory: %w", err)
	}
	return d.create(fileClaimed, claimRecord{Token: token})
}

// launch hands the lock and the request on to a supervisor, and waits until that has started the first stage. It
// closes its own hold on the lock.
func (p Program) launch(d dir, req StartRequest, lock *os.File) error {
	request, err := json.Marshal(req)
	if err != nil {
		return errors.New("start request can not be encoded")
	}
	ready, readyEnd, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	defer ready.Close()
	in, inEnd, err := os.Pipe()
	if err != nil {
		readyEnd.Close()
		return fmt.Errorf("start the supervisor: %w", err)
	}
	defer inEnd.Close()

	env := append(nodeEnv(os.Environ()), envMark+"="+markOf(d, req.Token))
	err = p.detach([]string{"supervise", string(d)}, env, in, lock, readyEnd)
	in.Close()
	readyEnd.Close()
	lock.Close() // from here on it is held as long as the supervisor lives
	if err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	_ = inEnd.SetWriteDeadline(time.Now().Add(readyPatience))
	_, writing := inEnd.Write(request)
	inEnd.Close()
	if err := awaitReady(ready); err != nil {
		return err
	}
	if writing != nil {
		return fmt.Errorf("hand the request to the supervisor: %w", writing)
	}
	return nil
}

// awaitReady returns when the supervisor has closed its end of the pipe: nothing written means that it went on.
func awaitReady(ready *os.File) error {
	_ = ready.SetReadDeadline(time.Now().Add(readyPatience))
	complaint, err := io.ReadAll(io.LimitReader(ready, 1<<10))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil // it is slow; the status says how far it has come
	case err != nil:
		return fmt.Errorf("wait for the supervisor: %w", err)
	case len(complaint) > 0:
		return errors.New(string(complaint))
	default:
		return nil
	}
}
