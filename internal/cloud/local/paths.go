package local

import (
	"path/filepath"
	"slices"

	"github.com/outlast-dev/outlast/internal/job"
)

// AgentDir is the directory for the agent's files about an attempt. It goes away with the machine.
func (p *Provider) AgentDir(n job.Node) string { return filepath.Join(n.Address, dirAgent) }

// NoticeFile is the file that appears on a machine when it is about to be taken. It holds an agent.Notice.
func (p *Provider) NoticeFile(n job.Node) string { return filepath.Join(n.Address, fileNotice) }

// PowerOff is the argv that makes a machine end itself, for the agent's dead man's switch. It does not
// wait for the end, which may come while it still runs.
func (p *Provider) PowerOff(n job.Node) []string {
	return append(slices.Clone(p.config.Machine), "poweroff", n.Address)
}
