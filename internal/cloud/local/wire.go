package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// A command reaches a machine over a connection of its own to the machine's socket. The client sends one byte with
// three descriptors, which become the command's standard input, output and error, and then a request; the answer is
// one reply. Data flows through the pipes only, so nothing is copied on the way, and the kernel does the flow control.
// A client that closes the connection before the reply wants the command to be ended.

// request asks for a command.
type request struct {
	Argv [][]byte `json:"argv"` // any bytes, not only text
}

// reply is how a command ended.
type reply struct {
	Code int `json:"code"` // 128+signal if ended by a signal; 126 or 127 if it could not be started
}

// stdio counts the descriptors that come with a request.
const stdio = 3

// socketPath is a short way to the socket in the open directory dir: the kernel allows 107 bytes, and a root may
// be longer than that.
func socketPath(dir *os.File, file string) string {
	return filepath.Join("/proc/self/fd", strconv.FormatUint(uint64(dir.Fd()), 10), file)
}

// listenIn makes the socket of the machine in dir. It gets its name only when it can be connected to.
func listenIn(dir string) (*net.UnixListener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = d.Close() }() // was only a name
	const unready = ".sock-new"
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPath(d, unready), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name is not good any more by then
	if err := os.Rename(filepath.Join(dir, unready), filepath.Join(dir, fileSocket)); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return l, nil
}

// dialIn connects to the socket of the machine in dir.
func dialIn(ctx context.Context, dir string) (*net.UnixConn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // was only a name
	return new(net.Dialer).DialUnix(ctx, "unix", nil, &net.UnixAddr{Name: socketPath(d, fileSocket), Net: "unix"})
}

// sendRequest sends a command with its descriptors, which stay open here.
func sendRequest(conn *net.UnixConn, r request, files [stdio]*os.File) error {
	rights := syscall.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd()))
	if _, _, err := conn.WriteMsgUnix([]byte{stdio}, rights, nil); err != nil {
		return fmt.Errorf("send the command: %w", err)
	}
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return fmt.Errorf("send the command: %w", err)
	}
	return nil
}

// receiveRequest receives what sendRequest sends. The files are the caller's to close.
func receiveRequest(conn *net.UnixConn) (request, [stdio]*os.File, error) {
	var files [stdio]*os.File
	var r request
	first, oob := make([]byte, 1), make([]byte, syscall.CmsgSpace(stdio*4))
	_, n, _, _, err := conn.ReadMsgUnix(first, oob)
	if err != nil {
		return r, files, fmt.Errorf("receive a command: %w", err)
	}
	fds, err := parseRights(oob[:n])
	if err != nil {
		return r, files, fmt.Errorf("receive a command: %w", err)
	}
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), [stdio]string{"stdin", "stdout", "stderr"}[i])
	}
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return r, files, errors.Join(fmt.Errorf("receive a command: %w", err), closeAll(files))
	}
	return r, files, nil
}

// parseRights takes the descriptors out of a control message.
func parseRights(oob []byte) ([]int, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		some, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		fds = append(fds, some...)
	}
	if len(fds) != stdio {
		for _, fd := range fds {
			_ = syscall.Close(fd) // refused anyway
		}
		return nil, fmt.Errorf("%d descriptors came with it, not %d", len(fds), stdio)
	}
	return fds, nil
}

func closeAll(files [stdio]*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
