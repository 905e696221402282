package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
)

// dirEnded holds one empty file for each attempt that was terminated in a zone, so that a create call that comes
// late makes nothing.
const dirEnded = ".ended"

const (
	endedKept   = time.Hour      // an ended machine stays listed for so long, as in other clouds
	attemptKept = 24 * time.Hour // longer: a machine that is forgotten must not be made again
	sweepers    = 4              // machines that one call ends at a time
)

// Terminate ends every machine that matches and returns when nothing of them runs any more. First it leaves word
// for creators that are under way, then it looks what is there: one of the two always sees the other.
func (p *Provider) Terminate(ctx context.Context, region string, match cloud.Match) error {
	if match.Deployment != p.config.Deployment {
		return refuse("terminate", job.Invalid, "", "the match is of deployment %q, this provider of %q", match.Deployment, p.config.Deployment)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	if match.NodeID == "" && match.Job != 0 && match.Attempt != 0 && zoneName.MatchString(region) {
		id := cloud.Identity{Deployment: match.Deployment, Job: match.Job, Nonce: match.Nonce, Task: match.Task, Attempt: match.Attempt}
		if err := p.markEnded(region, id); err != nil {
			return fmt.Errorf("terminate: %w", err)
		}
	}
	all, err := p.instances(ctx, "terminate", region)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(sweepers)
	var errs []error
	for _, in := range all {
		if !match.Selects(in.node(verdict{})) {
			continue
		}
		if err := p.condemn(in, match.NodeID == ""); err != nil {
			errs = append(errs, fmt.Errorf("terminate %s: %w", in.ID, err))
			continue
		}
		group.Go(func() error { return p.terminate(ctx, in) })
	}
	return errors.Join(append(errs, group.Wait())...)
}

// condemn records that a machine has to end, and with the whole attempt that it must not be made again.
func (p *Provider) condemn(in instance, attempt bool) error {
	if attempt {
		if err := p.markEnded(filepath.Base(filepath.Dir(in.dir)), in.Identity); err != nil {
			return err
		}
	}
	return in.finish(end{State: cloud.Terminated, Reason: "terminated on request", At: time.Now().UTC()})
}

// terminate brings a condemned machine to its end.
func (p *Provider) terminate(ctx context.Context, in instance) error {
	f, err := in.facts(p.boot, time.Now())
	if err != nil || f.gone {
		return err
	}
	if err := p.end(ctx, in); err != nil {
		return fmt.Errorf("terminate %s: %w", in.ID, err)
	}
	return nil
}

// endedFile is the file that marks an attempt as terminated. Of the deployment and the nonce, which are free text here, it
// has a hash.
func (p *Provider) endedFile(zone string, id cloud.Identity) string {
	sum := sha256.Sum256([]byte(id.Deployment + "\x00" + id.Nonce))
	return filepath.Join(p.config.Root, zone, dirEnded, fmt.Sprintf("%x-%d-%d-%d", sum[:8], id.Job, id.Task, id.Attempt))
}

// markEnded makes every later create call for an attempt fail. Marking it again makes it last longer.
func (p *Provider) markEnded(zone string, id cloud.Identity) error {
	path := p.endedFile(zone, id)
	if err := os.MkdirAll(filepath.Dir(path), private); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, privateRun)
	if err != nil {
		return err
	}
	now := time.Now()
	return errors.Join(f.Close(), os.Chtimes(path, now, now))
}

// refuseEnded refuses an attempt that was terminated.
func (p *Provider) refuseEnded(zone string, id cloud.Identity) error {
	ended, err := exists(p.endedFile(zone, id))
	if err != nil {
		return fmt.Errorf("create in %s: %w", zone, err)
	}
	if ended {
		return refuse("create", job.Invalid, "", "attempt %d of task %d of job %d was terminated", id.Attempt, id.Task, id.Job)
	}
	return nil
}

// forgotten reports whether a machine ended so long ago that it is not listed any more.
func forgotten(f facts) bool {
	return f.end != nil && f.gone && f.now.Sub(f.end.At) > endedKept
}

// forget removes a machine that ended long ago, and the marks of attempts that ended longer ago.
func (p *Provider) forget(in instance) error {
	zone := filepath.Base(filepath.Dir(in.dir))
	if err := p.markEnded(zone, in.Identity); err != nil {
		return err
	}
	if err := os.RemoveAll(in.dir); err != nil {
		return err
	}
	marks, err := os.ReadDir(filepath.Join(p.config.Root, zone, dirEnded))
	if err != nil {
		return err
	}
	for _, m := range marks {
		info, err := m.Info()
		if err != nil || time.Since(info.ModTime()) < attemptKept {
			continue // somebody else has removed it, or it is still needed
		}
		if err := os.Remove(filepath.Join(p.config.Root, zone, dirEnded, m.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
