package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binaries are the programs that a run starts.
type binaries struct {
	enqueue string
	workers [2]string // of two versions, which are otherwise the same
}

// versions are the names of the two.
var versions = [2]string{"v0.0.1-chaos", "v0.0.2-chaos"}

// build builds the programs from this source, unless they are there already. Workers are built with the planted bugs if one
// is to be on, and with the race detector if that is asked for.
func build(ctx context.Context, dir string, o options) (binaries, error) {
	b := binaries{enqueue: filepath.Join(dir, "enqueue")}
	if err := compile(ctx, b.enqueue, "./enqueue", versions[0], options{source: o.source}); err != nil {
		return b, err
	}
	for i, v := range versions {
		b.workers[i] = filepath.Join(dir, "worker-"+v)
		if err := compile(ctx, b.workers[i], "./worker", v, o); err != nil {
			return b, err
		}
	}
	return b, nil
}

func compile(ctx context.Context, out, pkg, version string, o options) error {
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	args := []string{"build", "-o", out, "-ldflags", "-X github.com/outlast-dev/outlast/internal/version.version=" + version}
	if o.plant != "" {
		args = append(args, "-tags", "planted")
	}
	if o.race {
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = o.source
	if !o.race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, text)
	}
	return nil
}
