package sim

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
)

// score is all that a run will do, if nobody ends it before.
type score struct {
	setup    time.Duration // that the setup takes
	total    time.Duration // that all takes; negative for ever
	stage    string        // that ends it
	code     int
	deaf     bool // it does not heed TERM
	hasSetup bool
	lines    []line
	printed  int // bytes, and some for each line
}

// line is something that a run prints.
type line struct {
	At    int64  `json:"t"`           // ms after the start
	Text  string `json:"x,omitempty"` // with its line end
	Stage string `json:"s,omitempty"` // the stage begins here, instead
}

// The exit codes of scripts that end badly, as in shells.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
	codeTerm          = 143
)

// compile plays the setup and the run of a request in its head:
//
//	echo TEXT                                   prints; $NAME stands for a variable that is no secret
//	sleep SECONDS                               decimals, or infinity
//	exit N                                      ends
//	exit N until ATTEMPT                        ends while OUTLAST_ATTEMPT is less
//	[ "$OUTLAST_ATTEMPT" -ge ATTEMPT ] || exit N  the same, for shells to understand as well
//	trap '' TERM                                it does not heed TERM from the beginning on
//	true, :, set ..., # comment                 nothing
//
// Anything else prints that it is not known, and ends with 127.
func compile(req agent.StartRequest) score {
	s := score{stage: "run", hasSetup: req.Setup != ""}
	attempt, _ := strconv.Atoi(req.Env["OUTLAST_ATTEMPT"])
	if s.hasSetup {
		s.play("setup", req.Setup, req, attempt)
		if s.setup = s.total; s.total < 0 {
			s.setup = math.MaxInt32 * time.Second
		}
		if s.code != 0 || s.total < 0 {
			s.stage = "setup"
			return s
		}
	}
	if req.Run != "" {
		s.play("run", req.Run, req, attempt)
	}
	return s
}

var (
	exitUntil = regexp.MustCompile(`^exit ([0-9]{1,3}) until ([0-9]{1,9})$`)
	exitTest  = regexp.MustCompile(`^\[ "?\$\{?OUTLAST_ATTEMPT\}?"? -ge ([0-9]{1,9}) \] \|\| exit ([0-9]{1,3})$`)
)

// Of a script that prints more than mostPrinted the rest is not played, since all of it is kept in Redis. Each line counts for
// perLine bytes more than it has.
const (
	mostPrinted = 1 << 20
	perLine     = 32
)

// moment is what a process takes that does nothing.
const moment = 5 * time.Millisecond

// play adds a stage. It leaves the code with which it ends.
func (s *score) play(stage, text string, req agent.StartRequest, attempt int) {
	s.print(line{Stage: stage})
	defer func() {
		if s.total >= 0 {
			s.total += moment
		}
	}()
	for _, l := range strings.Split(text, "\n") {
		if s.printed > mostPrinted {
			s.fail(fmt.Sprintf("the sim provider plays at most %d bytes", mostPrinted), codeNotExecutable)
			return
		}
		l = uncommented(strings.TrimSpace(l))
		word, rest, _ := strings.Cut(l, " ")
		rest = strings.TrimSpace(rest)
		switch {
		case l == "", strings.HasPrefix(l, "#"), l == ":", l == "true", word == "set":
		case l == "trap '' TERM", l == `trap "" TERM`:
			s.deaf = true
		case word == "echo":
			s.print(line{Text: spoken(rest, req, mostPrinted) + "\n"})
		case word == "sleep":
			d, ok := seconds(rest)
			if !ok {
				s.fail("sleep: invalid time interval "+strconv.Quote(rest), 1)
				return
			}
			if d < 0 {
				s.total = -1
				return
			}
			s.total += d
		case word == "exit":
			if code, ends := exitOf(l, attempt); ends {
				s.code = code
				return
			}
		case exitTest.MatchString(l):
			m := exitTest.FindStringSubmatch(l)
			if until, _ := strconv.Atoi(m[1]); attempt < until {
				s.code, _ = strconv.Atoi(m[2])
				return
			}
		default:
			s.fail(fmt.Sprintf("%q: the sim provider only plays echo, sleep and exit", word), codeNotFound)
			return
		}
	}
}

// uncommented takes the comment off the end of a line; what echo makes of one depends on quotes.
func uncommented(l string) string {
	if at := strings.Index(l, " #"); at >= 0 && !strings.HasPrefix(l, "echo ") {
		return strings.TrimSpace(l[:at])
	}
	return l
}

func (s *score) print(l line) {
	l.At = s.total.Milliseconds()
	s.printed += len(l.Text) + perLine
	s.lines = append(s.lines, l)
}

func (s *score) fail(text string, code int) {
	s.print(line{Text: text + "\n"})
	s.code = code
}

// exitOf reads an exit. ends tells whether it does so in this attempt; what makes no sense ends with 2, as in shells.
func exitOf(l string, attempt int) (code int, ends bool) {
	if m := exitUntil.FindStringSubmatch(l); m != nil {
		code, _ = strconv.Atoi(m[1])
		until, _ := strconv.Atoi(m[2])
		return code & 0xff, attempt < until
	}
	rest := strings.TrimSpace(strings.TrimPrefix(l, "exit"))
	if rest == "" {
		return 0, true
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return 2, true
	}
	return n & 0xff, true
}

// longestSleep is more than a simulation lasts.
const longestSleep = 10 * 365 * 24 * time.Hour

// seconds reads the argument of sleep; a negative answer means for ever.
func seconds(s string) (time.Duration, bool) {
	if s == "infinity" || s == "inf" {
		return -1, true
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0) {
		return 0, false
	}
	if n > longestSleep.Seconds() {
		return -1, true
	}
	return time.Duration(n * float64(time.Second)), true
}

// spoken is what echo prints: words as a shell sees them, with variables, and with stars for secrets, which are kept nowhere.
// Of variables at most so many bytes are said.
func spoken(text string, req agent.StartRequest, most int) string {
	value := func(name string) string {
		if most -= len(req.Env[name]); most < 0 {
			return ""
		}
		if _, secret := req.Secrets[name]; secret {
			return "***"
		}
		return req.Env[name]
	}
	var said strings.Builder
	gap := false // a blank is due before the next word
	for text = strings.TrimSpace(text); text != ""; {
		switch c := text[0]; {
		case c == ' ' || c == '\t':
			gap, text = true, text[1:]
			continue
		case c == '#' && (gap || said.Len() == 0):
			return said.String()
		}
		if gap {
			said.WriteByte(' ')
			gap = false
		}
		var part string
		switch quote := text[0]; quote {
		case '\'', '"':
			part, text, _ = strings.Cut(text[1:], string(quote))
			if quote == '"' {
				part = os.Expand(part, value)
			}
		default:
			end := strings.IndexAny(text, " \t'\"")
			if end < 0 {
				end = len(text)
			}
			part, text = os.Expand(text[:end], value), text[end:]
		}
		said.WriteString(part)
	}
	return said.String()
}

// size is how many bytes it prints, and last after how long it prints the last of them.
func (s *score) size() (size int, last int64) {
	for _, l := range s.lines {
		if l.Text != "" {
			size, last = size+len(l.Text), l.At
		}
	}
	return size, last
}
