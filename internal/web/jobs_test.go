package web_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

func request(name string) job.Request {
	return job.Request{Name: name, User: "ada", Tasks: []job.TaskRequest{{Run: "true"}}}
}

func jobPath(id job.ID) string { return fmt.Sprintf("/jobs/%d", id) }

var offerA = job.Offer{Provider: "local", Region: "a", Type: "small", Spot: true, Price: 0.03}

// rows are the ids of the jobs that a list shows.
func rows(body string) []string {
	var ids []string
	for _, m := range regexp.MustCompile(`data-key="job-(\d+)"`).FindAllStringSubmatch(body, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// Ensure that a list shows the jobs its address asks for, newest first, with the counts of all, and that the API lists the same.
func TestJobsAreFiltered(t *testing.T) {
	w := webtest.New(t, nil)
	train := w.Submit(request("train")) // 1
	w.Runs(train, offerA, time.Minute)
	w.Submit(job.Request{Name: "Train-big", User: "grace"}) // 2
	fails := w.Submit(request("fails"))                     // 3
	w.Runs(fails, offerA, time.Minute)
	w.Ends(fails, job.Failed, job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code 3"}, 3, 0)
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"3", "2", "1"}},
		{"live=1", []string{"2", "1"}},
		{"status=failed", []string{"3"}},
		{"status=RUNNING,PENDING", []string{"2", "1"}},
		{"status=RUNNING&status=FAILED", []string{"3", "1"}},
		{"name=TRAIN", []string{"2", "1"}},
		{"user=ada", []string{"3", "1"}},
		{"user=ada&status=RUNNING", []string{"1"}},
		{"user=nobody", nil},
		{"since=1h", []string{"3", "2", "1"}},
		{"since=2w&limit=2", []string{"3", "2"}},
		{"before=2", []string{"1"}},
	} {
		page := get(t, w.Server.URL()+"/?"+c.query)
		if got := rows(page.body); page.code != 200 || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d %v, want %v", c.query, page.code, got, c.want)
		}
		var list struct{ Jobs []struct{ ID job.ID } }
		if err := json.Unmarshal([]byte(get(t, w.Server.URL()+"/api/v1/jobs?"+c.query).body), &list); err != nil {
			t.Error(err)
		}
		var ids []string
		for _, j := range list.Jobs {
			ids = append(ids, fmt.Sprint(j.ID))
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%s: the API has %v, want %v", c.query, ids, c.want)
		}
	}
	body := get(t, w.Server.URL()+"/?status=FAILED").body
	for has, want := range map[string]bool{
		"All <b>3</b>": true, "Live <b>2</b>": true, "RUNNING <b>1</b>": true, `href="/?status=FAILED%2CRUNNING"`: true,
		"the user&#39;s code ended with exit code 3": true, `data-key="All" href="/" aria-current`: false, `data-key="FAILED" href="/" aria-current="true"`: true,
	} {
		if strings.Contains(body, has) != want {
			t.Errorf("the list of failed jobs: %q there: %v", has, !want)
		}
	}
	for _, bad := range []string{"status=FAILD", "live=maybe", "since=yesterday", "since=-1h", "before=x", "limit=0", "limit=100000", "name=a;b", "user=%zz"} {
		if got := get(t, w.Server.URL()+"/?"+bad); got.code != 400 {
			t.Errorf("%s: %d, want 400", bad, got.code)
		}
		if got := get(t, w.Server.URL()+"/api/v1/jobs?"+bad); got.code != 400 || !strings.Contains(got.body, `"error"`) {
			t.Errorf("%s: the API says %d %s", bad, got.code, got.body)
		}
	}
}

// Ensure that jobs which have left the store are listed from the archive, by the same filters, and apart from the others.
func TestArchivedJobsAreListed(t *testing.T) {
	w := webtest.New(t, nil)
	for _, name := range []string{"first", "second"} {
		id := w.Submit(request(name))
		w.Runs(id, offerA, time.Minute)
		w.Ends(id, job.Failed, job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code 3"}, 3, 0)
		w.Retire(id)
	}
	w.Submit(request("third"))
	for query, want := range map[string][]string{
		"":                                {"3"},
		"archived=1":                      {"2", "1"},
		"archived=1&limit=1":              {"2"},
		"archived=1&before=2":             {"1"},
		"archived=1&name=FIRST":           {"1"},
		"archived=1&status=failed":        {"2", "1"},
		"archived=1&status=SUCCEEDED":     nil,
		"archived=1&user=nobody&since=1h": nil,
	} {
		if page := get(t, w.Server.URL()+"/?"+query); page.code != 200 || !slices.Equal(rows(page.body), want) {
			t.Errorf("%s: %d %v, want %v", query, page.code, rows(page.body), want)
		}
	}
	body := get(t, w.Server.URL()+"/?archived=1").body
	if !strings.Contains(body, `data-key="Archived" href="/?archived=1" aria-current="true"`) || strings.Contains(body, `data-key="All" href="/" aria-current`) {
		t.Error("the list does not say that it is of the archive")
	}
	if got := get(t, w.Server.URL()+"/api/v1/jobs?archived=1").body; !strings.Contains(got, `"id": 2,`) || strings.Contains(got, `"id": 3,`) {
		t.Errorf("the API lists %s", got)
	}
	if got := get(t, w.Server.URL()+"/?archived=1&live=1"); got.code != 400 {
		t.Errorf("live jobs of the archive: %d, want 400", got.code)
	}
}

// Ensure that pages lead to each other, with every job on exactly one of them.
func TestJobsArePaged(t *testing.T) {
	w := webtest.New(t, nil)
	if _, err := w.Store.Submit(t.Context(), store.Submission{Request: request("many"), Count: 120}); err != nil {
		t.Fatal(err)
	}
	next := regexp.MustCompile(`<a href="([^"]+)" rel="next">`)
	var all []string
	for path := "/?user=ada"; path != ""; {
		body := get(t, w.Server.URL()+path).body
		all = append(all, rows(body)...)
		path = ""
		if m := next.FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(all) != 120 || all[0] != "120" || all[119] != "1" || len(slices.Compact(all)) != 120 {
		t.Errorf("%d jobs from %v", len(all), all[:min(3, len(all))])
	}
}

// Ensure that a damaged record is told and costs no other, and has a page that says so.
func TestDamagedRecords(t *testing.T) {
	w := webtest.New(t, nil)
	good, bad := w.Submit(request("good")), w.Submit(request("bad"))
	w.Corrupt(bad)
	if got := get(t, w.Server.URL()+"/"); !slices.Equal(rows(got.body), []string{fmt.Sprint(good)}) || !strings.Contains(got.body, "1 records of this page are damaged") {
		t.Errorf("the list shows %v", rows(got.body))
	}
	if got := get(t, w.Server.URL()+jobPath(bad)); got.code != 500 || !strings.Contains(got.body, "is damaged") {
		t.Errorf("its page: %d", got.code)
	}
}

// Ensure that a store that does not answer is told as a pause, without a word of where it is (G10).
func TestG10_AStoreThatIsAwayIsAPause(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("train"))
	w.DB.Kill9()
	for _, path := range []string{"/", jobPath(id), jobPath(id) + "/log", "/machines", "/workers", "/api/v1/jobs"} {
		got := get(t, w.Server.URL()+path)
		if got.code != 503 || !strings.Contains(got.body, "This is a pause") || strings.Contains(got.body, "dial") {
			t.Errorf("%s: %d %.300s", path, got.code, got.body)
		}
	}
	if got := ask(t, "POST", w.Server.URL()+jobPath(id)+"/cancel", "", func(r *http.Request) { form(r) }); got.code != 303 {
		t.Errorf("a cancel is up to what carries it out: %d", got.code)
	}
}

// Ensure that machines are judged by the rule of the collector, and what a region did not tell is told.
func TestMachines(t *testing.T) {
	w := webtest.New(t, nil)
	live, damaged := w.Submit(request("live")), w.Submit(request("damaged"))
	w.Runs(live, offerA, time.Minute)
	w.Corrupt(damaged)
	node := func(id string, owner job.ID) cloud.Node {
		return cloud.Node{
			Identity: cloud.Identity{Deployment: "test", Job: owner, Attempt: 1}, ID: id, Provider: "local", Region: "a", State: cloud.Running,
			CreatedAt: time.Now().Add(-time.Hour),
		}
	}
	w.View("local", "a", []cloud.Node{node("m-live", live), node("m-orphan", 99), node("m-damaged", damaged)}, "")
	w.View("local", "b", nil, "the provider said no")
	body := get(t, w.Server.URL()+"/machines").body
	for _, want := range []string{
		"1 of 3 machines belong to nobody", `v-orphan">orphan`, "job 99 is unknown", "the last look failed: the provider said no",
		`<a href="/jobs/1">job 1 try 1</a>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if n := strings.Count(body, `v-ok">ok`); n != 2 {
		t.Errorf("%d machines are ok, want the live one and the one whose record is damaged", n)
	}
}

// Ensure that workers are shown as they report.
func TestWorkers(t *testing.T) {
	w := webtest.New(t, nil)
	for _, one := range []store.Worker{{Name: "one", Ready: true}, {Name: "two", Why: "no key for secrets"}} {
		if err := w.Store.PutWorker(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	body := get(t, w.Server.URL()+"/workers").body
	for _, want := range []string{"one", `v-ok">ready`, "two", `v-closing">not ready`, "no key for secrets"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
}

// Ensure that the page of a job tells all about it, and of its secrets nothing but their names (G12).
func TestG12_JobPage(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(job.Request{
		Name: "train", User: "ada", Priority: 7,
		Webhooks: []job.Webhook{{URL: "https://u:pw@hooks.example/services/T0KEN?key=T0KEN"}},
		Tasks: []job.TaskRequest{{
			Run: "python train.py\n", Envs: map[string]string{"LR": "0.1"}, Secrets: []string{"API_KEY"}, MaxDuration: time.Hour,
			Files: []job.FileMount{{Path: "/data", Source: "https://u:pw@files.example/x?sig=T0KEN", Mode: "COPY"}},
		}},
	})
	w.Date(id, time.Hour)
	w.Runs(id, offerA, 50*time.Minute)
	w.Loses(id, job.Cause{Code: job.CodePreempted, Text: "the provider took the machine", Evidence: "n-1"}, 40*time.Minute)
	w.Says(id, 0, 1, 0, "one\ntwo\n")
	body := get(t, w.Server.URL()+jobPath(id)).body
	for _, want := range []string{
		"<title>RECOVERING · train · job 1 · Outlast</title>", "status-recovering.svg", "every offer failed in round 1",
		"RECOVERING: the provider took the machine (n-1)", "one\ntwo\n", "0.0081", "local/a", "small spot", `seg-running`, "lost:",
		"API_KEY", "LR: &#34;0.1&#34;", "python train.py", "https://hooks.example/…", "https://files.example/x", "max_duration: 1h0m0s",
		`data-stream="/jobs/1/live?from=0.2.0"`, `href="/jobs/1/cancel"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for _, secret := range []string{"T0KEN", "pw@"} {
		if strings.Contains(body, secret) {
			t.Errorf("%s is on the page", secret)
		}
	}
	if strings.Contains(body, "/resume") || strings.Contains(body, "/preempt") {
		t.Error("a job that recovers can be resumed or preempted")
	}
	api := get(t, w.Server.URL()+"/api/v1"+jobPath(id))
	var h struct {
		Status   string
		Cost     float64
		Attempts []struct{ N int }
	}
	if err := json.Unmarshal([]byte(api.body), &h); err != nil || h.Status != "RECOVERING" || h.Cost == 0 || len(h.Attempts) != 1 {
		t.Errorf("the API says %v %s", err, api.body)
	}
}

// Ensure that a page that has not changed is not sent again.
func TestUnchangedPagesAreNotSent(t *testing.T) {
	w := webtest.New(t, nil)
	first := get(t, w.Server.URL()+"/")
	again := func() answer {
		return ask(t, "GET", w.Server.URL()+"/", "", func(r *http.Request) { r.Header.Set("If-None-Match", first.header.Get("ETag")) })
	}
	if got := again(); got.code != 304 || got.body != "" {
		t.Errorf("the same page: %d", got.code)
	}
	w.Submit(request(url.QueryEscape("new")))
	if got := again(); got.code != 200 {
		t.Errorf("another page: %d", got.code)
	}
}

// Ensure that a job that has left the store for the archive has the same pages as before, but for what could be done to it.
func TestRetiredJobs(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(request("train"))
	w.Date(id, time.Hour)
	w.Runs(id, offerA, 50*time.Minute)
	w.Says(id, 0, 1, 0, "one\ntwo\n")
	w.Ends(id, job.Failed, job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code 3"}, 3, time.Minute)
	if got := get(t, w.Server.URL()+jobPath(id)); !strings.Contains(got.body, "/resume") {
		t.Fatal("a failed job cannot be resumed")
	}
	w.Retire(id)
	for path, wants := range map[string][]string{
		jobPath(id):                       {"FAILED", "exit code 3", "one\ntwo\n", "In the archive since", "seg-running"},
		jobPath(id) + "/log":              {"one\ntwo\n"},
		jobPath(id) + "/log/raw":          {"one\ntwo\n"},
		jobPath(id) + "/log?q=TWO":        {"<mark>two</mark>"},
		"/api/v1" + jobPath(id):           {`"status": "FAILED"`, `"attempts": [`},
		"/api/v1" + jobPath(id) + "/logs": {"one\ntwo\n"},
	} {
		got := get(t, w.Server.URL()+path)
		for _, want := range wants {
			if got.code != 200 || !strings.Contains(got.body, want) {
				t.Errorf("%s: %d, no %q", path, got.code, want)
			}
		}
		if strings.Contains(got.body, "/resume") {
			t.Errorf("%s can be resumed", path)
		}
	}
	for _, method := range []string{"GET", "POST"} {
		if got := ask(t, method, w.Server.URL()+jobPath(id)+"/resume", "", form); got.code != 409 || !strings.Contains(got.body, "This job is in the archive") {
			t.Errorf("%s of its resume: %d", method, got.code)
		}
	}
}
