package seal

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// Rotate puts a new key on top of the identity file at path: from then on it is the one to seal for, and those below it
// still open what was sealed before. The file is replaced as a whole, so that whoever reads it meanwhile sees the old or
// the new one, and two rotations at a time add two keys.
func Rotate(path string) (*Identity, error) {
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("rotate the identity: %w", err)
	}
	defer unlock()
	old, err := Load(path)
	if err != nil {
		return nil, err
	}
	i, err := Generate()
	if err != nil {
		return nil, err
	}
	i.keys = append(i.keys, old.keys...)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("rotate the identity: %w", err)
	}
	if err := renameio.WriteFile(path, i.Text(), info.Mode().Perm(), renameio.WithStaticPermissions(info.Mode().Perm())); err != nil {
		return nil, fmt.Errorf("rotate the identity: %w", err)
	}
	return i, nil
}

// lockDir keeps other rotations away until unlock. The directory is what is locked: the file itself is replaced.
func lockDir(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}
