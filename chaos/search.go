package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/outlast-dev/outlast/chaos/history"
)

// disguise is a form in which a value may lie in a file.
type disguise struct {
	name string
	text []byte
}

// disguises are the forms of a secret. Of its base64 only the middle is sought, which is the same whatever stands before it
// in groups of three bytes.
func disguises(secret string) []disguise {
	all := []disguise{{"plain", []byte(secret)}, {"hex", []byte(hex.EncodeToString([]byte(secret)))}}
	for skip := range 3 {
		whole := secret[skip : len(secret)-(len(secret)-skip)%3]
		all = append(all, disguise{"base64", []byte(base64.StdEncoding.EncodeToString([]byte(whole)))})
	}
	return all
}

// search looks for the planted secret in all that the round has left: logs, append-only files, the archive, machines, and
// what the clients have printed.
func (r *round) search(context.Context) error {
	looks := disguises(r.run.Secret)
	return filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(r.dir, path)
		if err != nil || name == history.FileRun { // which says what is sought
			return err
		}
		return r.searchFile(path, name, looks)
	})
}

// searchFile looks through a file in pieces, each with the end of the one before it.
func (r *round) searchFile(path, name string, looks []disguise) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("look for the secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	const piece, overlap = 1 << 20, 256
	buf := make([]byte, 0, piece+overlap)
	all := int64(0)
	for {
		n, err := io.ReadFull(f, buf[len(buf):len(buf)+piece])
		buf = buf[:len(buf)+n]
		all += int64(n)
		for _, l := range looks {
			if i := bytes.Index(buf, l.text); i >= 0 {
				r.out.Add(history.Leak{Where: name, As: l.name, Near: string(buf[max(0, i-40):i])})
			}
		}
		if err != nil { // its end, or the end of what can be read
			r.out.Add(history.Searched{Where: name, Bytes: all})
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return nil
			}
			return fmt.Errorf("look for the secret: %w", err)
		}
		keep := copy(buf[:overlap], buf[len(buf)-overlap:])
		buf = buf[:keep]
	}
}
