package agent

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Unpacked is the answer to unpack.
type Unpacked struct {
	SHA256  string `json:"sha256"`
	Already bool   `json:"already,omitempty"` // it was there before
}

// limits bound what a bundle may become.
type limits struct {
	bytes   int64 // of all files together
	entries int
}

// unpackLimits leave room for any code; data belongs into a bucket.
var unpackLimits = limits{bytes: 64 << 30, entries: 1 << 20}

// unpack makes DIR/workdir from a tar.gz with this SHA-256 (of the compressed bytes): all of it or nothing, and
// once. It may be called by several at the same time.
func unpack(d dir, sum string, bundle io.Reader, most limits) (Unpacked, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return Unpacked{}, fmt.Errorf("%q is no SHA-256", sum)
	}
	if d.unpacked(sum) {
		return Unpacked{SHA256: sum, Already: true}, nil
	}
	if err := d.make(); err != nil {
		return Unpacked{}, err
	}
	tmp, err := os.MkdirTemp(string(d), "unpack.*.tmp")
	if err != nil {
		return Unpacked{}, fmt.Errorf("unpack the bundle: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what is left is not looked at by anybody
	if err := extractChecked(tmp, sum, bundle, most); err != nil {
		if d.unpacked(sum) { // somebody else was faster, and has removed what this one made
			return Unpacked{SHA256: sum, Already: true}, nil
		}
		return Unpacked{}, fmt.Errorf("unpack the bundle: %w", err)
	}
	already, err := d.exchangeWork(tmp, sum)
	if err != nil {
		return Unpacked{}, fmt.Errorf("unpack the bundle: %w", err)
	}
	return Unpacked{SHA256: sum, Already: already}, nil
}

// unpacked reports whether workdir is that of the bundle.
func (d dir) unpacked(sum string) bool {
	have, err := readBounded(d.path(fileWorkHash), maxRecord)
	return err == nil && string(have) == sum
}

// exchangeWork puts a whole directory in the place of workdir. The name of the bundle is removed before and
// written after, so that a crash in between means that it is unpacked again.
func (d dir) exchangeWork(tmp, sum string) (already bool, err error) {
	lock, err := waitLock(d.path(fileWorkLock))
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if d.unpacked(sum) {
		return true, nil
	}
	if d.has(fileLaunching) {
		return false, errors.New("the run has been started with another work directory")
	}
	if err := os.RemoveAll(d.path(fileWorkHash)); err != nil {
		return false, err
	}
	if err := os.RemoveAll(d.path(dirWork)); err != nil {
		return false, err
	}
	if err := os.Rename(tmp, d.path(dirWork)); err != nil {
		return false, err
	}
	if err := os.WriteFile(d.path(fileWorkHash), []byte(sum), 0o600); err != nil {
		return false, err
	}
	d.removeOthers()
	return false, nil
}

// removeOthers removes what killed or slower unpackers have left.
func (d dir) removeOthers() {
	others, _ := filepath.Glob(d.path("unpack.*.tmp"))
	for _, other := range others {
		_ = os.RemoveAll(other)
	}
}

// extractChecked unpacks into a directory and fails if the bundle is not the one that was meant.
func extractChecked(folder, sum string, bundle io.Reader, most limits) error {
	hash := sha256.New()
	compressed := io.TeeReader(bundle, hash)
	if err := extract(folder, compressed, most); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(compressed, most.bytes)); err != nil {
		return err
	}
	if have := hex.EncodeToString(hash.Sum(nil)); have != sum {
		return fmt.Errorf("it has the SHA-256 %s", have)
	}
	return nil
}

// extract unpacks a tar.gz. Every file operation goes through an [os.Root], which does not leave the folder.
func extract(folder string, bundle io.Reader, most limits) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	plain, err := gzip.NewReader(bundle)
	if err != nil {
		return err
	}
	x := extraction{root: root, links: make(map[string]bool), left: most}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.entry(header, archive); err != nil {
			return fmt.Errorf("entry %q: %w", header.Name, err)
		}
	}
}

// extraction is the work on one bundle.
type extraction struct {
	root  *os.Root
	links map[string]bool // symbolic links so far; nothing is unpacked through one
	left  limits
}

func (x *extraction) entry(h *tar.Header, content io.Reader) error {
	if x.left.entries--; x.left.entries < 0 {
		return errors.New("too many entries")
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := x.place(h.Name)
	if err != nil {
		return err
	}
	if err := x.root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := x.root.MkdirAll(name, 0o700); err != nil {
			return err
		}
		return x.root.Chmod(name, h.FileInfo().Mode().Perm()|0o700) // or nothing could be put into it
	case tar.TypeReg:
		return x.file(name, h, content)
	case tar.TypeSymlink:
		return x.symlink(name, h.Linkname)
	case tar.TypeLink:
		target, err := x.place(h.Linkname)
		if err != nil {
			return err
		}
		return x.root.Link(target, name)
	default:
		return fmt.Errorf("type %q is not allowed", h.Typeflag)
	}
}

// place checks a name within the bundle.
func (x *extraction) place(name string) (string, error) {
	if strings.ContainsRune(name, 0) || !filepath.IsLocal(name) {
		return "", errors.New("leads out of the bundle")
	}
	name = filepath.Clean(name)
	for at := name; at != "."; at = filepath.Dir(at) {
		if x.links[at] {
			return "", errors.New("lies behind a symbolic link")
		}
	}
	return name, nil
}

// file unpacks one file. A later entry of the same name replaces the earlier one, as tar has it.
func (x *extraction) file(name string, h *tar.Header, content io.Reader) error {
	if x.left.bytes -= h.Size; x.left.bytes < 0 {
		return errors.New("the bundle is too large")
	}
	if err := x.root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := x.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, h.FileInfo().Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil && !h.ModTime.IsZero() {
		err = x.root.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

// symlink makes a symbolic link that can not lead out of the bundle: it goes up only at its beginning, never
// above the top, and from there only down; and links on its way do the same.
func (x *extraction) symlink(name, target string) error {
	if filepath.IsAbs(target) || target == "" || strings.ContainsRune(target, 0) {
		return errors.New("links out of the bundle")
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return errors.New("links out of the bundle")
			}
		default:
			down = true
		}
	}
	if err := x.root.Symlink(target, name); err != nil {
		return err
	}
	x.links[name] = true
	return nil
}
