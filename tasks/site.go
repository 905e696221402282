package tasks

import (
	"context"
	"errors"
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
	// Limits bound the calls of the provider.
	Limits Limits
}

// Sites are the providers that a worker serves, by name.
type Sites map[string]*Site

// whereabouts is a region of a provider.
type whereabouts struct{ provider, region string }

// regions asks all providers at once for the regions that may hold machines. Those that fail, or do not answer within
// the limit, are left out, and the error tells of them.
func (s Sites) regions(ctx context.Context, limit time.Duration) ([]whereabouts, error) {
	type answer struct {
		provider string
		regions  []string
		err      error
	}
	answers := make(chan answer, len(s))
	for name, site := range s {
		go within(ctx, limit, func(ctx context.Context) {
			regions, err := site.Provider.Regions(ctx)
			answers <- answer{name, regions, err}
		})
	}
	var all []whereabouts
	var failed []error
	for range s {
		a := <-answers
		if a.err != nil {
			failed = append(failed, fmt.Errorf("regions of %s: %w", a.provider, a.err))
		}
		for _, region := range a.regions {
			all = append(all, whereabouts{a.provider, region})
		}
	}
	return all, errors.Join(failed...)
}

// errNotServed says that another worker must drive a job: all of a deployment should serve the same providers, but while
// the settings change they do not. It is a pause for the job and no fault of it (G10).
var errNotServed = errors.New("this worker does not serve the provider")

func (s Sites) of(provider string) (*Site, error) {
	site, ok := s[provider]
	if !ok {
		return nil, &cloud.Error{Op: "reach " + provider, Class: job.Transient, Err: errNotServed}
	}
	return site, nil
}
