package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// A mount is a file or folder of the user's that is brought to a place on the node before the run. One below the work
// directory is moved there. One anywhere else is kept in the attempt's directory, and a symbolic link leads to it: so it
// goes away with the attempt, and nothing that is on the node is ever written over.
//
//	mounts/KEY/content   what was unpacked
//	mounts/KEY/made      where it is: written before it gets there, so that whatever is there afterwards is ours
const (
	dirMounts    = "mounts"
	mountContent = "content"
	mountMade    = "made"
)

// errMount says that a mount cannot be made here, whoever tries.
var errMount = errors.New("cannot be placed")

// mount is one that is to be made.
type mount struct {
	dir  dir
	path string // as asked for
	file string // name within the bundle, "" for all of it
	sum  string // of the bundle
}

// madeRecord says which mount was made, or was being made.
type madeRecord struct {
	Path   string `json:"path"`
	File   string `json:"file,omitempty"`
	SHA256 string `json:"sha256"`
	Done   bool   `json:"done,omitempty"`
}

// folder is where the mount is kept.
func (m mount) folder() string {
	sum := sha256.Sum256([]byte(m.path))
	return filepath.Join(dirMounts, hex.EncodeToString(sum[:8]))
}

func (m mount) made() string { return filepath.Join(m.folder(), mountMade) }

// place makes a mount from a tar.gz with this SHA-256, once. The same call again finds it made.
func place(m mount, bundle io.Reader, most limits) (Unpacked, error) {
	if err := m.check(); err != nil {
		return Unpacked{}, err
	}
	if err := os.MkdirAll(m.dir.path(m.folder()), 0o700); err != nil {
		return Unpacked{}, fmt.Errorf("make the directory of a mount: %w", err)
	}
	lock, err := waitLock(m.dir.path(fileWorkLock))
	if err != nil {
		return Unpacked{}, err
	}
	defer lock.Close()
	rec := madeRecord{Path: m.path, File: m.file, SHA256: m.sum}
	was := load[madeRecord](m.dir, m.made())
	if was != nil && *was == (madeRecord{Path: m.path, File: m.file, SHA256: m.sum, Done: true}) {
		return Unpacked{SHA256: m.sum, Already: true}, nil
	}
	if m.dir.has(fileLaunching) {
		return Unpacked{}, errors.New("the run has been started without this mount")
	}
	at, err := m.target()
	if err != nil {
		return Unpacked{}, err
	}
	if err := m.unpack(bundle, most); err != nil {
		return Unpacked{}, err
	}
	if err := m.clear(at, was != nil); err != nil {
		return Unpacked{}, err
	}
	if err := m.dir.replace(m.made(), rec); err != nil {
		return Unpacked{}, err
	}
	if err := m.put(at); err != nil {
		return Unpacked{}, fmt.Errorf("%s %w: %w", m.path, errMount, err)
	}
	rec.Done = true
	return Unpacked{SHA256: m.sum}, m.dir.replace(m.made(), rec)
}

// check refuses what can be seen to be wrong.
func (m mount) check() error {
	if raw, err := hex.DecodeString(m.sum); err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("%q is no SHA-256", m.sum)
	}
	switch {
	case m.path == "", len(m.path) > 4096, strings.ContainsFunc(m.path, unicode.IsControl):
		return fmt.Errorf("%q %w: it is no path", m.path, errMount)
	case strings.Contains("/"+m.path+"/", "/../"):
		return fmt.Errorf("%s %w: .. is not allowed in it", m.path, errMount)
	case m.file != "" && (!filepath.IsLocal(m.file) || strings.ContainsFunc(m.file, unicode.IsControl)):
		return fmt.Errorf("%q %w: it is no name within the bundle", m.file, errMount)
	}
	return nil
}

// target is the absolute place of the mount.
func (m mount) target() (string, error) {
	path := filepath.Clean(m.path)
	if rest, ok := strings.CutPrefix(m.path, "~/"); ok {
		home := os.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("%s %w: the node has no home directory", m.path, errMount)
		}
		path = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(path) {
		path = m.dir.path(filepath.Join(dirWork, path))
	}
	switch {
	case path == m.dir.path(dirWork) || path == "/" || path == os.Getenv("HOME"):
		return "", fmt.Errorf("%s %w: it is there already", m.path, errMount)
	case within(path, string(m.dir)) && !within(path, m.dir.path(dirWork)):
		return "", fmt.Errorf("%s %w: it belongs to the agent", m.path, errMount)
	}
	for _, system := range []string{"/proc", "/sys", "/dev"} {
		if within(path, system) {
			return "", fmt.Errorf("%s %w: it belongs to the system", m.path, errMount)
		}
	}
	return path, nil
}

// within reports whether a clean path is a folder or lies below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// unpack brings the content into the mount's own directory.
func (m mount) unpack(bundle io.Reader, most limits) error {
	content := m.dir.path(filepath.Join(m.folder(), mountContent))
	if err := os.RemoveAll(content); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	if err := os.Mkdir(content, 0o700); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	if err := extractChecked(content, m.sum, bundle, most); err != nil {
		return fmt.Errorf("unpack the bundle: %w", err)
	}
	if m.file == "" {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(content, m.file)); err != nil {
		return fmt.Errorf("%s %w: the bundle has no %q", m.path, errMount, m.file)
	}
	return nil
}

// clear makes sure that nothing is at a place. What an earlier try of this mount has left goes, and so does a link to what
// an attempt had there that is gone.
func (m mount) clear(at string, tried bool) error {
	info, err := os.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %w: %w", m.path, errMount, err)
	}
	link := info.Mode()&fs.ModeSymlink != 0
	switch {
	case link && m.stale(at):
		return os.Remove(at)
	case tried && !link && within(at, m.dir.path(dirWork)):
		root, err := os.OpenRoot(m.dir.path(dirWork)) // a link in the work directory may lead anywhere
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		rel, err := filepath.Rel(m.dir.path(dirWork), at)
		if err != nil {
			return err
		}
		if err := root.RemoveAll(rel); err != nil {
			return fmt.Errorf("%s %w: %w", m.path, errMount, err)
		}
		return nil
	}
	return fmt.Errorf("%s %w: something is there already, and it is not written over", m.path, errMount)
}

// stale reports whether a link leads into this attempt's mounts, or into those of one that is over or gone.
func (m mount) stale(at string) bool {
	to, err := os.Readlink(at)
	if err != nil || !filepath.IsAbs(to) {
		return false
	}
	other, rest, ok := strings.Cut(to, "/"+dirMounts+"/")
	if !ok || !strings.Contains(rest+"/", "/"+mountContent+"/") {
		return false
	}
	if dir(other) == m.dir {
		return true
	}
	if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		return true
	}
	st, err := dir(other).look()
	return err == nil && (st.State == Exited || st.State == Lost)
}

// put brings the content to its place.
func (m mount) put(at string) error {
	content := m.dir.path(filepath.Join(m.folder(), mountContent, m.file))
	if !within(at, m.dir.path(dirWork)) {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		return os.Symlink(content, at)
	}
	if err := os.MkdirAll(m.dir.path(dirWork), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(string(m.dir)) // a link in the work directory may lead anywhere
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	to, err := filepath.Rel(string(m.dir), at)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return root.Rename(filepath.Join(m.folder(), mountContent, m.file), to)
}

// unmount removes the links to mounts outside of the attempt's directory, when nothing uses them any more.
func (d dir) unmount() {
	records, _ := filepath.Glob(d.path(filepath.Join(dirMounts, "*", mountMade)))
	for _, name := range records {
		rel, err := filepath.Rel(string(d), name)
		if err != nil {
			continue
		}
		rec := load[madeRecord](d, rel)
		if rec == nil {
			continue
		}
		m := mount{dir: d, path: rec.Path}
		at, err := m.target()
		if err != nil || within(at, string(d)) {
			continue
		}
		if to, err := os.Readlink(at); err == nil && within(to, d.path(dirMounts)) {
			_ = os.Remove(at)
		}
	}
}
