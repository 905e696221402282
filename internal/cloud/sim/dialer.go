package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

const (
	agentDir   = "/sim/agent"
	noticeFile = "/sim/notice.json"
)

// Dialer returns the way to the agents of machines. Calls of many goroutines share round trips. The caller is written into
// the ledger.
func (c *Cloud) Dialer(caller string) machine.Dialer { return dialer{c, caller} }

type dialer struct {
	cloud  *Cloud
	caller string
}

// Dial returns a Shell without a look at the machine.
func (d dialer) Dial(_ context.Context, node job.Node) (machine.Shell, error) {
	if homeOf(node.ID) == "" {
		return nil, fmt.Errorf("sim machine %q: %w", node.ID, machine.ErrUnreachable)
	}
	return shell{d.cloud, node.ID, d.caller}, nil
}

// shell answers as the agent would, to any argv that ends with a command of it: there is no other program on the machine.
type shell struct {
	cloud  *Cloud
	id     string
	caller string
}

// Close does nothing.
func (shell) Close() error { return nil }

// AgentArgv is what the agent's commands follow on a machine.
var AgentArgv = []string{"agent"}

// Run carries out a command of the agent.
func (s shell) Run(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer) error {
	if ctx.Err() != nil {
		return fmt.Errorf("sim machine %s: %w", s.id, context.Cause(ctx))
	}
	l, err := s.reach(ctx)
	if err != nil {
		return err
	}
	if len(argv) == 0 || argv[0] != AgentArgv[0] {
		return &machine.CommandError{Code: codeNotFound, Stderr: "there is only the agent"}
	}
	answer, err := s.answer(ctx, l, argv[1:], stdin)
	if err != nil {
		return err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("sim machine %s: encode the answer: %w", s.id, err)
	}
	if l.lost {
		return s.away("the connection was closed before the answer came")
	}
	if _, err := stdout.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("sim machine %s: %w", s.id, err)
	}
	return nil
}

func (s shell) away(why string) error {
	return fmt.Errorf("sim machine %s: %s: %w", s.id, why, machine.ErrUnreachable)
}

// broken is an error of the sim itself, which is a machine that does not answer. If the caller went away it is that.
func (s shell) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("sim machine %s: %w", s.id, cause)
	}
	return fmt.Errorf("sim machine %s: %w: %w", s.id, machine.ErrUnreachable, err)
}

// reached is a look at a machine that answers.
type reached struct {
	look
	lost bool // what is done is done, but nobody hears of it
}

// reach looks at the machine, and lets the faults happen that it meets on the way.
func (s shell) reach(ctx context.Context) (reached, error) {
	l, err := s.cloud.looks.at(ctx, s.id)
	if err != nil {
		return reached{}, s.broken(ctx, err)
	}
	met := plague{}
	for id, f := range l.faults {
		if !s.meets(l.m, f) || rand.Float64() >= f.P {
			continue
		}
		hit, err := s.cloud.run(ctx, luaHit, s.caller, id).Int()
		if err != nil {
			return reached{}, s.broken(ctx, err)
		}
		if hit == 1 {
			met[f.Kind] = time.Duration(f.Delay) * time.Millisecond
		}
	}
	switch {
	case met.has(UnreachableKind):
		return reached{}, s.away("no route to it")
	case met.has(HangKind):
		if err := met.hang(ctx); err != nil {
			return reached{}, fmt.Errorf("sim machine %s: %w", s.id, err)
		}
		if l, err = s.cloud.looks.at(ctx, s.id); err != nil { // things have changed meanwhile
			return reached{}, s.broken(ctx, err)
		}
	}
	if !l.there || !l.m.reachable(l.at) {
		return reached{}, s.away("it is not up")
	}
	return reached{l, met.has(LostKind)}, nil
}

// meets reports whether a fault is for this machine.
func (s shell) meets(m record, f faultRecord) bool {
	if f.Zone != "" && f.Zone != m.zone {
		return false
	}
	z, _ := s.cloud.world.zone(m.zone)
	return f.Region == "" || f.Region == z.region()
}

// The exit codes of the agent, see [agent.Program.Main].
const (
	exitRefused = 1
	exitUsage   = 2
)

func refused(format string, args ...any) error {
	return &machine.CommandError{Code: exitRefused, Stderr: fmt.Sprintf(format, args...) + "\n"}
}

// answer carries out one command.
func (s shell) answer(ctx context.Context, l reached, args []string, stdin io.Reader) (any, error) {
	usage := &machine.CommandError{Code: exitUsage, Stderr: "usage: start DIR | poll DIR OFFSET MAX | stop DIR GRACE_SECONDS | unpack DIR SHA256 | mount DIR SHA256 PATH [FILE] | version\n"}
	if len(args) == 0 {
		return nil, usage
	}
	command, args := args[0], args[1:]
	if command == "version" && len(args) == 0 {
		return agent.Version{Protocol: agent.Protocol, Version: "sim"}, nil
	}
	if len(args) == 0 {
		return nil, usage
	}
	if !filepath.IsAbs(args[0]) {
		return nil, refused("directory %q is not absolute", args[0])
	}
	switch {
	case command == "start" && len(args) == 1:
		return s.start(ctx, stdin)
	case command == "poll" && len(args) == 3:
		return s.poll(l, args[1], args[2])
	case command == "stop" && len(args) == 2:
		return s.stop(ctx, args[1])
	case command == "unpack" && len(args) == 2, command == "mount" && (len(args) == 3 || len(args) == 4):
		return s.unpack(ctx, command, args[1], stdin)
	default:
		return nil, usage
	}
}

// poll looks at the run and its log.
func (s shell) poll(l reached, from, most string) (any, error) {
	offset, errFrom := strconv.ParseInt(from, 10, 64)
	limit, errMost := strconv.ParseInt(most, 10, 64)
	if errFrom != nil || errMost != nil || offset < 0 || limit < 0 {
		return nil, refused("offset %q and maximum %q must be whole numbers from 0 on", from, most)
	}
	st := l.m.status(l.run, l.at)
	st.Clock = l.m.clock(l.at)
	if err := l.m.log(&st, l.run, l.at, offset, limit); err != nil {
		return nil, fmt.Errorf("sim machine %s: %w", s.id, err)
	}
	return st, nil
}

// start plans the run, once.
func (s shell) start(ctx context.Context, stdin io.Reader) (any, error) {
	req, err := agent.ReadStart(orEmpty(stdin))
	if err != nil {
		return nil, refused("%v", err)
	}
	plan := compile(req)
	lines, err := json.Marshal(plan.lines)
	if err != nil {
		return nil, fmt.Errorf("sim machine %s: encode the plan: %w", s.id, err)
	}
	size, last := plan.size()
	total := int64(-1)
	if plan.total >= 0 {
		total = plan.total.Milliseconds()
	}
	deaf := 0
	if plan.deaf {
		deaf = 1
	}
	out, err := s.cloud.run(ctx, luaStart, s.caller, s.id, word(req.Token), plan.setup.Milliseconds(), total, plan.stage, plan.code,
		noticeSignal(req), deaf, size, last, lines).Slice()
	if err != nil {
		return nil, s.broken(ctx, err)
	}
	if out[0] == "other" {
		return nil, refused("this directory belongs to another attempt")
	}
	st, err := s.status(out)
	st.Already = out[0] == "already"
	return st, err
}

// stop ends the run, or forbids its start.
func (s shell) stop(ctx context.Context, grace string) (any, error) {
	n, err := strconv.ParseFloat(grace, 64)
	if err != nil || !(n >= 0) {
		return nil, refused("grace %q must be a number of seconds from 0 on", grace)
	}
	const maxGrace = 7 * 24 * time.Hour
	ms := int64(min(n, maxGrace.Seconds()) * 1000)
	out, err := s.cloud.run(ctx, luaStop, s.caller, s.id, ms).Slice()
	if err != nil {
		return nil, s.broken(ctx, err)
	}
	return s.status(out)
}

// status is the answer to a command that a script has carried out.
func (s shell) status(out []any) (agent.Status, error) {
	if out[0] == "away" {
		return agent.Status{}, s.away("it is not up")
	}
	l := look{at: integer(out[1])}
	if err := l.read(s.id, out[2], out[3]); err != nil {
		return agent.Status{}, fmt.Errorf("sim machine %s: %w", s.id, err)
	}
	return l.m.status(l.run, l.at), nil
}

// word is a token as a word of a line.
func word(token string) string {
	sum := sha256.Sum256([]byte(token))
	for _, c := range token {
		if c <= ' ' || c > '~' {
			return hex.EncodeToString(sum[:])
		}
	}
	return token
}

// noticeSignals are the signals that a notice may be told with.
var noticeSignals = map[string]int{"": 15, "TERM": 15, "INT": 2, "HUP": 1, "USR1": 10, "USR2": 12, "none": 0}

// noticeSignal is what the run gets when a notice comes: "-" if it is not told, "0" if without a signal.
func noticeSignal(req agent.StartRequest) string {
	if req.NoticeFile == "" {
		return "-"
	}
	return strconv.Itoa(noticeSignals[req.NoticeSignal])
}

// unpack reads a bundle, finds out whether it is the one that was meant, and drops it.
func (s shell) unpack(ctx context.Context, command, sum string, bundle io.Reader) (any, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, refused("%q is no SHA-256", sum)
	}
	unpacked := s.cloud.key("u:" + homeOf(s.id))
	if command == "unpack" {
		have, err := s.cloud.rdb.HGet(ctx, unpacked, s.id).Result()
		if err == nil && have == sum {
			return agent.Unpacked{SHA256: sum, Already: true}, nil
		}
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, orEmpty(bundle)); err != nil {
		return nil, fmt.Errorf("sim machine %s: read the bundle: %w", s.id, err)
	}
	if have := hex.EncodeToString(hash.Sum(nil)); have != sum {
		return nil, refused("unpack the bundle: it has the SHA-256 %s", have)
	}
	if command == "unpack" {
		if err := s.cloud.rdb.HSet(ctx, unpacked, s.id, sum).Err(); err != nil {
			return nil, s.broken(ctx, err)
		}
	}
	return agent.Unpacked{SHA256: sum}, nil
}

// orEmpty is a reader that may be read.
func orEmpty(r io.Reader) io.Reader {
	if r == nil {
		return eof{}
	}
	return r
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
