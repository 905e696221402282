package archive

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
)

// Limits bound what Pack takes. Zero fields mean the defaults.
type Limits struct {
	Bytes int64 // sum of the sizes of all files, not compressed; 512 MB by default
	Files int   // files, links and directories; 100,000 by default
}

// The default limits. Data belongs into a bucket that the job reads; a bundle is for code.
const (
	DefaultBytes = 512_000_000
	DefaultFiles = 100_000
)

// ErrTooLarge says that a directory exceeds the limits.
var ErrTooLarge = errors.New("too large to be sent along")

// skipped is left out wherever it is found: history is large, never needed by a run, and may hold credentials.
const skipped = ".git"

// Pack packs dir into a temporary file, which the caller must Remove. The same content always makes the same bundle:
// entries are sorted, keep their permission bits, and lose their times and owners.
//
// Errors name the entry that cannot be packed: a link out of dir, a pipe, socket or device, an unreadable file. They wrap
// [ErrTooLarge] when a limit is exceeded. Links inside dir are kept as links.
func Pack(dir string, limits Limits) (Bundle, error) {
	return packInto(dir, limits, func(p *packer) error {
		if err := p.measure(); err != nil {
			return err
		}
		return fs.WalkDir(p.root.FS(), ".", p.add) // in the order of names
	})
}

// PackFile packs one file, under its own name, as [Pack] does a directory. A link is followed: the user named it, so it
// is the file behind it that is wanted.
func PackFile(path string, limits Limits) (Bundle, error) {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Bundle{}, fmt.Errorf("pack %s: %w", path, err)
	}
	return packInto(filepath.Dir(file), limits, func(p *packer) error {
		return p.addFile(filepath.Base(file), filepath.Base(path))
	})
}

// packInto packs what fill adds from within dir.
func packInto(dir string, limits Limits, fill func(*packer) error) (_ Bundle, err error) {
	root, err := os.OpenRoot(dir) // nothing outside can be read through it, not even if a link changes meanwhile
	if err != nil {
		return Bundle{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	out, err := os.CreateTemp("", "outlast-bundle-*.tar.gz")
	if err != nil {
		return Bundle{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			_ = os.Remove(out.Name())
			err = fmt.Errorf("pack %s: %w", dir, err)
		}
	}()

	sum := sha256.New()
	zip := gzip.NewWriter(io.MultiWriter(out, sum)) // its header holds neither name nor time
	p := &packer{root: root, tar: tar.NewWriter(zip), limits: Limits{
		Bytes: cmp.Or(limits.Bytes, DefaultBytes),
		Files: cmp.Or(limits.Files, DefaultFiles),
	}}
	if err := fill(p); err != nil {
		return Bundle{}, err
	}
	if err := errors.Join(p.tar.Close(), zip.Close()); err != nil {
		return Bundle{}, err
	}
	info, err := out.Stat()
	if err != nil {
		return Bundle{}, err
	}
	return Bundle{
		Key: keyOfBundle(sum.Sum(nil)), Size: info.Size(), Files: p.files, Unpacked: p.bytes, path: out.Name(),
	}, nil
}

// packer writes the entries of one tree.
type packer struct {
	root    *os.Root
	tar     *tar.Writer
	limits  Limits
	entries int
	files   int
	bytes   int64
}

// measure refuses a tree that is over the limits before anything of it is read, so that nobody waits for half a gigabyte to be
// packed in vain. Whatever else is wrong is left to add.
func (p *packer) measure() error {
	seen := packer{limits: p.limits}
	return fs.WalkDir(p.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // add tells it
		case d.Name() == skipped && d.IsDir():
			return fs.SkipDir
		case d.Name() == skipped || name == ".":
			return nil
		}
		var size int64
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		if err := seen.countEntry(); err != nil {
			return err
		}
		return seen.countBytes(size)
	})
}

// countEntry counts a file, link or directory.
func (p *packer) countEntry() error {
	if p.entries++; p.entries > p.limits.Files {
		return fmt.Errorf("more than %d files: %w", p.limits.Files, ErrTooLarge)
	}
	return nil
}

// countBytes counts the bytes of a file.
func (p *packer) countBytes(n int64) error {
	if p.bytes += n; p.bytes > p.limits.Bytes {
		return fmt.Errorf("more than %d MB of files: %w", p.limits.Bytes/1_000_000, ErrTooLarge)
	}
	return nil
}

// add packs one entry; it is the function of the walk.
func (p *packer) add(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return err // names the entry
	}
	if d.Name() == skipped {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil // a submodule or worktree has a file of that name
	}
	if name == "." {
		return nil
	}
	if err := p.countEntry(); err != nil {
		return err
	}
	switch kind := d.Type(); kind {
	case fs.ModeDir:
		return p.addDir(name, d)
	case fs.ModeSymlink:
		return p.addLink(name)
	case 0:
		return p.addFile(name, name)
	default:
		return fmt.Errorf("%q is a %s and cannot be packed", name, kindOf(kind))
	}
}

func (p *packer) addDir(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	return p.tar.WriteHeader(header(name+"/", tar.TypeDir, info.Mode(), 0))
}

func (p *packer) addLink(name string) error {
	target, err := p.root.Readlink(name)
	if err != nil {
		return err
	}
	if err := p.checkLink(name, target); err != nil {
		return err
	}
	h := header(name, tar.TypeSymlink, 0o777, 0)
	h.Linkname = target
	return p.tar.WriteHeader(h)
}

// checkLink refuses a link that would lead elsewhere on the node than here, or out of the tree. It looks at the path as
// written, and then follows it, since a link on the way may change what ".." means. A link to nothing is allowed: the
// run may make its target.
func (p *packer) checkLink(name, target string) error {
	written := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || written == ".." || strings.HasPrefix(written, "../") {
		return fmt.Errorf("%q is a link to %q, outside of the directory", name, target)
	}
	if _, err := p.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q is a link to %q, which cannot be followed inside of the directory: %w", name, target, err)
	}
	return nil
}

// addFile packs a file, and calls it as in the bundle.
func (p *packer) addFile(name, as string) error {
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // must not wait for a pipe that took its place
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%q is no file any more, or never was", name)
	}
	p.files++
	if err := p.countBytes(info.Size()); err != nil {
		return err
	}
	if err := p.tar.WriteHeader(header(as, tar.TypeReg, info.Mode(), info.Size())); err != nil {
		return err
	}
	// A file that grows meanwhile, such as a log, is packed as it was; one that shrinks cannot be.
	if _, err := io.CopyN(p.tar, f, info.Size()); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%q changed while it was packed", name)
		}
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// header holds what makes a difference to a run, and nothing else.
func header(name string, kind byte, mode fs.FileMode, size int64) *tar.Header {
	return &tar.Header{
		Name: name, Typeflag: kind, Mode: int64(mode.Perm()), Size: size, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}
