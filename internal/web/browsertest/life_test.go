package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/outlast-dev/outlast/internal/config"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
)

// dev is a real worker with all it stands on, and a connection to its store.
type dev struct {
	url   string
	store *store.Store
}

// startDev builds the worker and runs it until the end of the test. Its jobs end before it, so that nothing is left.
func startDev(t *testing.T) *dev {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "worker")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/outlast-dev/outlast/worker").CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	home, err := os.MkdirTemp("", "outlast") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "dev", "--home", home)
	cmd.Env = append(os.Environ(), "OUTLAST_HOME="+home, "XDG_CONFIG_HOME="+home, "OUTLAST_REDIS=", "OUTLAST_FAILURE_GRACE=100ms")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the worker said:\n%s", text)
		}
	})
	d := &dev{}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); ; <-look.C {
		where, err := config.ReadDev(home)
		if err == nil && ready(where.HTTP) {
			d.url = where.HTTP
			rdb, err := config.RedisURL(where.Redis).RecordClient()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rdb.Close() })
			d.open(t, rdb)
			return d
		}
		if time.Now().After(deadline) {
			t.Fatalf("the worker does not come up: %v", err)
		}
	}
}

func ready(url string) bool {
	defer http.DefaultClient.CloseIdleConnections()
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (d *dev) open(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	var err error
	if d.store, err = store.Open(context.Background(), rdb); err != nil {
		t.Fatal(err)
	}
}

func (d *dev) submit(t *testing.T, name, run string) string {
	t.Helper()
	ids, err := d.store.Submit(context.Background(), store.Submission{Request: job.Request{
		Name: name, User: "ada", Tasks: []job.TaskRequest{{Run: run, Grace: time.Second}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s/jobs/%d", d.url, ids[0])
}

// Ensure the whole life of jobs as a person sees it in a browser, with real workers and machines: the list fills by
// itself, output is followed live, a lost machine shows as a second attempt, a cancel ends the job, and a resume takes it
// up again; all without one reload.
func TestLifeOfAJob(t *testing.T) {
	d := startDev(t)
	b := openTab(t, d.url, 1440, 900)
	b.open(d.url + "/")
	b.has("main", "There is no job yet")
	train := d.submit(t, "train", `i=0; while true; do echo "step $i"; i=$((i+1)); sleep 0.2; done`)
	b.has("tr", "train")
	b.has("tr", "RUNNING")
	b.has(".pill", "Live 1")

	b.click("tbody a") // on to the job
	b.has("#log", "step 1")
	b.wait(`document.title.startsWith("RUNNING")`)
	value[bool](b, `window.same = true`) // gone after a reload
	b.has("#log", "step 5")

	other := openTab(t, d.url, 390, 844)
	other.open(train + "/preempt")
	other.click("#do")
	other.has(".banner", "Its machine is being taken away")
	b.wait(`document.querySelectorAll("#timeline li:not(.axis)").length === 2`)
	b.has("#timeline .lost", "lost:")
	b.has("#log", "attempt 2 on local/")
	b.has("#events", "RECOVERING")
	b.has(".facts", "once")
	b.wait(`document.querySelector("link[rel=icon]").href.includes("status-running")`)

	other.open(train + "/cancel")
	other.write("#grace", "1s")
	other.click("#do")
	other.has(".banner", "The job is being cancelled")
	b.has(".chip", "CANCELLED")
	b.has("#events", "cancelled by web")
	b.wait(`document.title.startsWith("CANCELLED")`)
	b.has(".actions", "Resume the job")
	if !value[bool](b, `window.same === true`) {
		t.Error("the page was reloaded")
	}
	b.sane()

	b.click(`.actions a[href$="/resume"]`)
	b.has("h1", "Resume the job?")
	b.click("#do")
	b.has(".banner", "The job is being resumed")
	b.has(".chip", "RUNNING")
	b.has("#log", "step 2")
	b.wait(`document.querySelectorAll("#timeline li:not(.axis)").length === 3`)
	b.click(`.actions a[href$="/cancel"]`)
	b.write("#grace", "0s")
	b.click("#do")
	b.has(".chip", "CANCELLED")
	b.has(".actions", "Resume the job") // its machine is gone

	fails := d.submit(t, "fails", "echo before; exit 3")
	b.open(fails)
	b.has(".chip", "FAILED")
	b.has(".why", "exit code 3")
	b.has("#log", "before")
	for _, path := range []string{"/machines", "/workers", "/?status=FAILED", "/?name=tra&live=1"} {
		b.open(d.url + path)
		b.sane()
	}
	b.has("#list", "No job is like that")
	b.open(d.url + "/?status=FAILED")
	b.has("tr", "fails")
	if n := value[int](b, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("%d jobs have failed, want 1", n)
	}
}
