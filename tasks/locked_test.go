package tasks

import (
	"testing"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/seal"
	"github.com/outlast-dev/outlast/internal/store"
)

// Ensure that a worker which cannot open a job's secrets pauses the job and says why: before a machine is taken and at the
// start of the code, whether it has no key, another one, or the blob is damaged. It is no fault that counts (G10, G13).
func TestG10_LockedSecretsArePause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, other := generate(t), generate(t)
	sealed, err := seal.Seal(other.Recipient(), map[string]string{SecretKey(0, "TOKEN"): "value"})
	if err != nil {
		t.Fatal(err)
	}
	request := job.Request{Tasks: []job.TaskRequest{{Run: "true", Secrets: []string{"TOKEN"}, Resources: job.Resources{Any: []job.Want{{}}}}}}
	far := Sites{"far": site(&rented{name: "far"}, hangs)}
	for _, tt := range []struct {
		name   string
		opener Opener
		sealed []byte
	}{
		{"no key", nil, sealed},
		{"another key", mine, sealed},
		{"a damaged blob", other, append([]byte("x"), sealed...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ids, err := b.store.Submit(t.Context(), store.Submission{Request: request, Sealed: tt.sealed})
			if err != nil {
				t.Fatal(err)
			}
			w := b.worker(func(c *Config) { c.Identity, c.Sites = tt.opener, far })
			d := b.begun(w, ids[0], job.PhaseReady)
			chosen, err := d.choose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			started, err := d.start(t.Context(), far["far"], &d.job.Live[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []*job.Fault{chosen.Fault, started.Fault} {
				if f == nil || f.Class != job.Locked || f.Text == "" {
					t.Errorf("have %+v, want a fault of the class locked", f)
				}
			}
		})
	}
}

func generate(t *testing.T) *seal.Identity {
	t.Helper()
	i, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return i
}
