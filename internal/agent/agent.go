package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"time"
)

// Protocol counts the incompatible changes of what this package reads and writes.
const Protocol = 1

// Program is the agent as part of a program.
type Program struct {
	// Self is the argv that starts this same agent as a process, to which a command is appended, such as
	// {"/proc/self/exe", "agent"}.
	Self []string
}

// The exit codes of [Program.Main]. What the user's code ended with is never among them.
const (
	exitOK      = 0
	exitRefused = 1 // the command failed or was refused; standard error says why
	exitUsage   = 2 // there is no such command
	exitMount   = ExitMount
)

// ExitMount is the exit code for a mount that cannot be made on this node, however often it is tried.
const ExitMount = 3

// errUsage says that the arguments make no command.
var errUsage = errors.New(
	"usage: start DIR | poll DIR OFFSET MAX | stop DIR GRACE_SECONDS | unpack DIR SHA256 | mount DIR SHA256 PATH [FILE] | serve | version")

// Main carries out one command and returns the exit code for it. It keeps no state between calls and may be
// called by several goroutines at once. After a start it may leave a goroutine that waits for the supervisor.
//
//	start DIR                starts a run once; standard input is a [StartRequest]; answers a [Status]
//	poll DIR OFFSET MAX      answers a [Status] with at most MAX bytes of the log, and renews the lease
//	stop DIR GRACE_SECONDS   asks the run to end and returns at once; answers a [Status]
//	unpack DIR SHA256        makes DIR/workdir from a tar.gz on standard input; answers an [Unpacked]
//	mount DIR SHA256 PATH [FILE]
//	                         brings a tar.gz on standard input, or one file of it, to a place; answers an [Unpacked]
//	serve                    answers many commands, see [Refusal]
//	version                  answers a [Version]
func (p Program) Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	err := p.run(args, stdin, stdout)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		_, _ = fmt.Fprintln(stderr, err)
		return exitUsage
	case errors.Is(err, errMount):
		_, _ = fmt.Fprintln(stderr, err)
		return exitMount
	default:
		_, _ = fmt.Fprintln(stderr, err)
		return exitRefused
	}
}

func (p Program) run(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	switch command, rest := args[0], args[1:]; command {
	case "serve":
		return p.serve(rest, stdin, stdout)
	case "supervise":
		return supervise(rest, stdin)
	case "sweep":
		return sweep(rest)
	default:
		answer, err := p.answer(command, rest, stdin)
		if err != nil {
			return err
		}
		return writeLine(stdout, answer)
	}
}

// answer carries out a command that has one answer. stdin is nil where there is none.
func (p Program) answer(command string, args []string, stdin io.Reader) (any, error) {
	if command == "version" && len(args) == 0 {
		return version(), nil
	}
	if len(args) == 0 {
		return nil, errUsage
	}
	d, err := openDir(args[0])
	if err != nil {
		return nil, err
	}
	switch {
	case command == "start" && len(args) == 1 && stdin != nil:
		return answerOf(p.start(d, stdin))
	case command == "unpack" && len(args) == 2 && stdin != nil:
		return answerOf(unpack(d, args[1], stdin, unpackLimits))
	case command == "mount" && (len(args) == 3 || len(args) == 4) && stdin != nil:
		m := mount{dir: d, sum: args[1], path: args[2]}
		if len(args) == 4 {
			m.file = args[3]
		}
		return answerOf(place(m, stdin, unpackLimits))
	case command == "poll" && len(args) == 3:
		offset, limit, err := numbers(args[1], args[2])
		if err != nil {
			return nil, err
		}
		return answerOf(poll(d, offset, limit))
	case command == "stop" && len(args) == 2:
		grace, err := seconds(args[1])
		if err != nil {
			return nil, err
		}
		return answerOf(p.stop(d, grace))
	default:
		return nil, errUsage
	}
}

// answerOf drops the type of an answer.
func answerOf[T any](answer T, err error) (any, error) { return answer, err }

// openDir checks a directory of an attempt, which need not exist. It must be absolute, since nothing here has a
// working directory to rely on.
func openDir(name string) (dir, error) {
	if !filepath.IsAbs(name) {
		return "", fmt.Errorf("directory %q is not absolute", name)
	}
	return dir(filepath.Clean(name)), nil
}

func numbers(a, b string) (x, y int64, err error) {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil || x < 0 || y < 0 {
		return 0, 0, fmt.Errorf("offset %q and maximum %q must be whole numbers from 0 on", a, b)
	}
	return x, y, nil
}

// maxGrace is far beyond any use; it keeps sums of times from overflowing.
const maxGrace = 7 * 24 * time.Hour

func seconds(s string) (time.Duration, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0) {
		return 0, fmt.Errorf("grace %q must be a number of seconds from 0 on", s)
	}
	if n > maxGrace.Seconds() {
		return maxGrace, nil
	}
	return time.Duration(n * float64(time.Second)), nil
}

// writeLine writes one answer in a single call, so that a reader sees it whole or cut off, never mixed.
func writeLine(w io.Writer, answer any) error {
	line, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// Version is the answer to version.
type Version struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	Go       string `json:"go"`
}

func version() Version {
	v := Version{Protocol: Protocol, Version: "unknown"}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version, v.Go = info.Main.Version, info.GoVersion
	}
	return v
}
