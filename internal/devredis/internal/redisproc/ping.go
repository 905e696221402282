package redisproc

import (
	"bytes"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// pingTimeout bounds one look at a server that accepts connections but does not answer.
const pingTimeout = time.Second

// ping reports whether a server answers on the socket. One that still loads its file says so instead of PONG, which is
// enough if loading is; one that asks for a password, or lost its master, says that, which is enough always. It speaks the protocol itself: a client library would log every failed attempt.
func ping(socket string, loading bool) bool {
	conn, err := net.DialTimeout("unix", socket, pingTimeout)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(pingTimeout)); err != nil {
		return false
	}
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, len("+PONG"))
	_, err = io.ReadFull(conn, answer)
	if err != nil {
		return false
	}
	switch string(answer) {
	case "+PONG", "-NOAU", "-MAST":
		return true
	case "-LOAD":
		return loading
	default:
		return false
	}
}

// tailBytes is enough for the message with which a server gives up.
const tailBytes = 1024

// tail returns what the log says from an offset on, its last part at most, in one line.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.NewSectionReader(f, from, 1<<20))
	if err != nil {
		return ""
	}
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	lines := strings.FieldsFunc(string(bytes.ToValidUTF8(text, []byte("?"))), func(r rune) bool { return r < ' ' })
	return strings.Join(lines, " | ")
}
