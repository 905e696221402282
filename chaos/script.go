package main

import (
	"fmt"
	"strings"
	"time"
)

// step is a line of a job's code, as both providers can play it.
type step struct {
	echo  string
	sleep time.Duration
	exit  int  // 0: goes on
	deaf  bool // does not heed TERM from here on
	tell  bool // prints the secret, where code can
	until int  // exits only while OUTLAST_ATTEMPT is smaller; 0: always
}

func echo(text string) step            { return step{echo: text} }
func sleep(d time.Duration) step       { return step{sleep: d} }
func exit(code int) step               { return step{exit: code} }
func exitUntil(code, attempt int) step { return step{exit: code, until: attempt} }
func works(text string, d time.Duration) []step {
	return []step{echo("begin " + text), sleep(d), echo("end " + text)}
}

// plain is a script for the sim provider, which plays the same in its own way, and for any shell.
func plain(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.echo != "":
			fmt.Fprintf(&b, "echo %s\n", s.echo)
		case s.sleep > 0:
			fmt.Fprintf(&b, "sleep %.3f\n", s.sleep.Seconds())
		case s.deaf:
			b.WriteString("trap '' TERM\n")
		case s.tell:
			b.WriteString("echo the key is safe\n")
		case s.until > 0:
			fmt.Fprintf(&b, "[ \"$OUTLAST_ATTEMPT\" -ge %d ] || exit %d\n", s.until, s.exit)
		default:
			fmt.Fprintf(&b, "exit %d\n", s.exit)
		}
	}
	return b.String()
}

// witness is how code on local machines leaves evidence of its own: a line at its begin, now and then, and at its end, and
// one if another incarnation of it holds the lock of its job. Written with one system call each, so that lines of two never mix.
const witness = `exec 9>>"$SHARED/$OUTLAST_JOB_ID.lock"
say() {
  local t=${EPOCHREALTIME/[.,]/}
  echo "$1 $OUTLAST_JOB_ID $TASK $OUTLAST_ATTEMPT $$ ${t%???}" >> "$SHARED/$OUTLAST_JOB_ID.trace"
}
flock -n 9 || say double
trap 'say term; exit 143' TERM
trap 'say end' EXIT
say start
`

// beat is how often it writes that it still runs.
const beat = 250 * time.Millisecond

// witnessed is a script for the local provider.
func witnessed(steps []step) string {
	var b strings.Builder
	b.WriteString(witness)
	for _, s := range steps {
		if s.tell {
			fmt.Fprintf(&b, "echo \"the key is $%s\"\n", secretName)
			continue
		}
		if s.sleep <= 0 {
			b.WriteString(plain([]step{s}))
			continue
		}
		fmt.Fprintf(&b, "for i in $(seq %d); do say beat; sleep %.3f; done\n", max(1, int(s.sleep/beat)), beat.Seconds())
	}
	return b.String()
}
