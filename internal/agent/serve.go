package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Refusal is the answer of serve to a command that failed, in place of the command's own.
type Refusal struct {
	Error string `json:"error"`
}

// maxLine bounds a request of serve.
const maxLine = 64 << 10

// serve answers many commands over one connection, for whoever follows a log: each line of the input is the argv
// of a poll, stop or version as a JSON array of strings, and each gets one line. It ends with its input. A line
// that is no such array gets a [Refusal]; one that is too long ends it, since where the next one begins is
// anybody's guess.
func (p Program) serve(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 0 {
		return errUsage
	}
	lines := bufio.NewScanner(stdin)
	lines.Buffer(make([]byte, 0, 1024), maxLine)
	for lines.Scan() {
		if err := writeLine(stdout, p.serveLine(lines.Bytes())); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read a request: %w", err)
	}
	return nil
}

func (p Program) serveLine(line []byte) any {
	args, err := parseLine(line)
	if err != nil {
		return Refusal{err.Error()}
	}
	answer, err := p.answer(args[0], args[1:], nil)
	if err != nil {
		return Refusal{err.Error()}
	}
	return answer
}

// parseLine decodes a request: a JSON array of at least one string.
func parseLine(line []byte) ([]string, error) {
	var args []string
	if err := json.Unmarshal(line, &args); err != nil || len(args) == 0 {
		return nil, errors.New(`a request is a line such as ["poll","DIR","0","65536"]`)
	}
	return args, nil
}
