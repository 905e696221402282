package tasks

import (
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
)

// Site is a provider together with the way to its machines. The worker's main makes them: it alone knows concrete
// providers.
type Site struct {
	Provider cloud.Provider
	Dialer   machine.Dialer
	// Agent is the argv prefix of the agent on a node.
	Agent []string
	// Dir is where the agent keeps an attempt's files on a node.
	Dir func(job.Node) string
	// NoticeFile is where the provider announces on the node that it will take it; nil if it does not.
	NoticeFile func(job.Node) string
	// PowerOff is the argv that ends the machine from inside; nil if it cannot.
	PowerOff func(job.Node) []string
	// ViewEvery is how often all machines of a region are listed.
	ViewEvery time.Duration
}

// Sites are the providers that a worker serves, by name.
type Sites map[string]*Site

func (s Sites) of(provider string) (*Site, error) {
	site, ok := s[provider]
	if !ok {
		return nil, &cloud.Error{Op: "reach the provider", Class: job.Transient, Err: fmt.Errorf("this worker does not serve %q", provider)}
	}
	return site, nil
}
