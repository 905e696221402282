package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// example is a way in which a file of examples/ is run, and what its log must hold then.
type example struct {
	file  string
	flags []string
	end   string
	logs  []string
	id    string // of the job
}

// Ensure with the real programs that each job file in examples/ runs and does what its first lines say.
func TestExamples(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker("--webhooks-private")
	chat := newChat(t)
	in := func(name string) string { return filepath.Join(f.shared, name) }
	examples := []example{
		{file: "chain.yaml", end: "SUCCEEDED", logs: []string{"fetching for ", "epoch 3 of 3\n", "the tasks of this job:\n"}},
		{file: "files.yaml", end: "SUCCEEDED", logs: []string{"/data/words.txt has 12 words\n"}},
		{file: "limits.yaml", end: "SUCCEEDED", logs: []string{"done in time\n"}},
		{file: "limits.yaml", end: "FAILED", flags: []string{"--max-duration", "1s", "--env", "SECONDS_OF_WORK=3600"}},
		{file: "retries.yaml", end: "SUCCEEDED", flags: []string{"--env", "STATE_DIR=" + in("retries")}, logs: []string{"try 1\n", "try 2\n", "try 3\n"}},
		{file: "spot-then-on-demand.yaml", end: "SUCCEEDED", logs: []string{"running on {", "lost machines so far: 0\n"}},
		{file: "train.yaml", end: "SUCCEEDED", flags: []string{"--env", "CHECKPOINT_DIR=" + in("train"), "--env", "SECONDS_PER_STEP=0.01"},
			logs: []string{"step 1 of 30\n", "step 30 of 30\ndone\n"}},
		{file: "webhook.yaml", end: "SUCCEEDED", flags: []string{"--secret", "CHAT_URL=" + chat.server.URL}, logs: []string{"working\n"}},
		{file: "on-notice.yaml", end: "CANCELLED", flags: []string{"--env", "SAVED=" + in("notice"), "--env", "LINES_WANTED=1000000"},
			logs: []string{"saved ", "went on with "}},
	}
	ran := map[string]bool{}
	for i, e := range examples {
		path, err := filepath.Abs(filepath.Join("../examples", e.file))
		if err != nil {
			t.Fatal(err)
		}
		r := f.enqueue(append(append([]string{"launch", "-d"}, e.flags...), path)...)
		if r.code != 0 {
			t.Fatalf("launch %s: %+v", e.file, r)
		}
		examples[i].id = strings.TrimSpace(r.out)
		ran[e.file] = true
	}
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if !ran[filepath.Base(path)] {
			t.Errorf("%s is not run here: add a row for it", path)
		}
	}

	// The one with a script for a notice saves what it has, and its next attempt goes on with that.
	id := examples[len(examples)-1].id
	says := func(text string) {
		f.eventually("job "+id+" to say "+text, func() bool { return strings.Contains(f.enqueue("logs", id).out, text) })
	}
	says("working\n")
	if r := f.enqueue("preempt", id, "--notice", "60s"); r.code != 0 {
		t.Fatalf("preempt: %+v", r)
	}
	says("went on with ")
	if r := f.enqueue("cancel", id); r.code != 0 {
		t.Fatalf("cancel: %+v", r)
	}

	for _, e := range examples {
		f.await(e.id, e.end)
		out := f.enqueue("logs", e.id).out
		for _, want := range e.logs {
			if !strings.Contains(out, want) {
				t.Errorf("%s: the log lacks %q:\n%s", e.file, want, out)
			}
		}
	}
	f.eventually("the chat to be told", func() bool { return slices.Equal(chat.told(), []string{"STARTED", "SUCCEEDED"}) })
}

// chat is a receiver of webhooks that keeps what it was told.
type chat struct {
	server *httptest.Server
	mu     sync.Mutex
	events []string
}

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{}
	c.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Event, Text string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Text == "" {
			t.Errorf("a webhook sent %+v, error %v", body, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.events = append(c.events, body.Event)
	}))
	t.Cleanup(c.server.Close)
	return c
}

func (c *chat) told() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}
