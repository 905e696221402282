package agent

import (
	"syscall"
	"testing"
)

// mountSmall returns a file system of 256 KiB, or skips the test where that is not allowed.
func mountSmall(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system to fill: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return folder
}
