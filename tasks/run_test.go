package tasks

import (
	"context"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/agent"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/machine"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a node which quotes what it was sent does not bring a secret into the record: what it says becomes the
// evidence of a wait or an ending, which everybody can read (G12).
func TestG12_RefusedStartQuotesNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-and-then-some"
	b := newBench(t)
	identity, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := seal.Seal(identity.Recipient(), map[string]string{SecretKey(0, "TOKEN"): secret})
	if err != nil {
		t.Fatal(err)
	}
	request := job.Request{Tasks: []job.TaskRequest{{Run: "true", Secrets: []string{"TOKEN"}, Resources: job.Resources{Any: []job.Want{{}}}}}}
	ids, err := b.store.Submit(t.Context(), store.Submission{Request: request, Sealed: sealed})
	if err != nil {
		t.Fatal(err)
	}
	w := b.worker(func(c *Config) {
		c.Identity = identity
		c.Sites = Sites{"far": site(&rented{name: "far"}, func(context.Context, []string) (agent.Status, error) {
			return agent.Status{}, &machine.CommandError{Code: 1, Stderr: `bad request: {"secrets":{"TOKEN":"` + secret + `"}}`}
		})}
	})
	d := b.begun(w, ids[0], job.PhaseReady)
	p, err := d.start(t.Context(), w.sites["far"], &d.job.Live[0])
	if err != nil {
		t.Fatal(err)
	}
	if p.Fault == nil || p.Fault.Class != job.Transient || strings.Contains(p.Fault.Text, secret) || !strings.Contains(p.Fault.Text, seal.Redacted) {
		t.Errorf("the fault is %+v", p.Fault)
	}
}
