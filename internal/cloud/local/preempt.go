package local

import (
	"context"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/cloud"
)

// Preempt takes a machine as a cloud takes a spot machine: at once, or with a notice in the file [Provider.NoticeFile]
// and at its deadline. The deadline is kept by the machine itself, and by the next List if it is not. A first
// notice stays as it is; a machine that has ended already is a success.
func (p *Provider) Preempt(ctx context.Context, region, nodeID string, notice time.Duration) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("preempt: %w", err)
	}
	in, err := p.own("preempt", region, nodeID)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	if notice > 0 {
		n := agent.Notice{At: now.UnixMilli(), Deadline: now.Add(notice).UnixMilli()}
		if err := writeOnce(in.dir, fileNotice, n); err != nil {
			return fmt.Errorf("preempt %s: %w", nodeID, err)
		}
		return nil
	}
	if err := in.finish(end{State: cloud.Preempted, Reason: "taken without notice", At: now}); err != nil {
		return fmt.Errorf("preempt %s: %w", nodeID, err)
	}
	return p.terminate(ctx, in)
}
