package browsertest

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// shown is a deployment as the screens show it.
type shown struct{ running, recovered, failed job.ID }

func showcase(t *testing.T, w *webtest.World) shown {
	t.Helper()
	spotA := job.Offer{Provider: "local", Region: "a", Type: "local", Spot: true, Price: 0.0333}
	spotB := job.Offer{Provider: "local", Region: "b", Type: "local", Spot: true, Price: 0.0367}
	taken := job.Cause{Code: job.CodePreempted, Text: "the provider took the machine", Evidence: "a-d7746a50b9c6739f: taken after a notice of 30s"}
	gone := job.Cause{Code: job.CodeVanished, Text: "the provider does not know the machine any more", Evidence: "two lists without b-51c0ffee"}
	user := func(name, user string, tasks ...job.TaskRequest) job.ID {
		return w.Submit(job.Request{Name: name, User: user, Tasks: tasks})
	}
	for i, name := range []string{"tokenize-2026-11", "eval-nightly", "resize-images", "embed-docs"} {
		id := user(name, []string{"ada", "grace"}[i%2])
		w.Date(id, time.Duration(30-i)*time.Hour)
		w.Runs(id, spotA, time.Duration(29-i)*time.Hour)
		w.Ends(id, job.Succeeded, job.Cause{Code: job.CodeSucceeded, Text: "the user's code ended with exit code 0"}, 0, time.Duration(25-i*3)*time.Hour)
	}
	var s shown
	s.failed = user("convert", "grace", job.TaskRequest{Run: "python convert.py --to parquet"})
	w.Date(s.failed, 70*time.Minute)
	w.Runs(s.failed, spotA, 65*time.Minute)
	w.Says(s.failed, 0, 1, 0, "reading 412 files\nTraceback (most recent call last):\n  File \"convert.py\", line 31, in <module>\n    main()\nKeyError: 'timestamp'\n")
	w.Ends(s.failed, job.Failed, job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code 1", Evidence: "run: exit code 1"}, 1, 20*time.Minute)
	cancelled := user("sweep-7", "ada")
	w.Date(cancelled, 55*time.Minute)
	w.Ends(cancelled, job.Cancelled, job.Cause{Code: job.CodeCancelled, Text: "cancelled by ada (web)"}, 143, 50*time.Minute)

	s.recovered = user("train-resnet", "ada", job.TaskRequest{
		Setup: "pip install -r requirements.txt", Run: "python train.py \\\n  --checkpoint $CHECKPOINT_DIR",
		Envs: map[string]string{"CHECKPOINT_DIR": "/var/lib/checkpoints"}, Secrets: []string{"WANDB_API_KEY"},
		Resources: job.Resources{Any: []job.Want{{CPUs: job.Quantity{N: 4, AtLeast: true}, UseSpot: true}}},
		Recovery:  job.Recovery{MaxRestartsOnErrors: 2},
	})
	w.Date(s.recovered, 5*time.Hour)
	w.Runs(s.recovered, spotA, 290*time.Minute)
	w.Loses(s.recovered, taken, 170*time.Minute)
	w.Runs(s.recovered, spotB, 150*time.Minute)
	w.Loses(s.recovered, gone, 50*time.Minute)
	w.Runs(s.recovered, spotA, 40*time.Minute)
	var out strings.Builder
	fmt.Fprintln(&out, "resumed from checkpoint at step 18400")
	for step := 18500; step <= 21000; step += 100 {
		fmt.Fprintf(&out, "step %d  loss %.4f  1412 images/s\n", step, 2.1-float64(step-18000)/3000)
	}
	w.Says(s.recovered, 0, 1, 0, "step 100  loss 6.9021  1398 images/s\n")
	w.Says(s.recovered, 0, 2, 0, "resumed from checkpoint at step 9800\n")
	w.Says(s.recovered, 0, 3, 0, out.String())

	s.running = w.Submit(job.Request{Name: "pipeline", User: "grace", Tasks: []job.TaskRequest{{Name: "prepare", Run: "make data"}, {Name: "train", Run: "make train"}, {Name: "report", Run: "make report"}}})
	w.Date(s.running, 12*time.Minute)
	w.Runs(s.running, spotB, 10*time.Minute)
	w.Says(s.running, 0, 1, 0, "downloading shard 1 of 8\ndownloading shard 2 of 8\ndownloading shard 3 of 8\n")
	waits := user("big-batch", "ada")
	w.Change(waits, func(r *job.Record, now job.Time) {
		r.Wait = job.Waiting{For: job.Cause{Code: job.CodeLaunchSlot, Text: "64 jobs are being launched, as many as are allowed at a time"}, Since: now}
	})
	w.View("local", "a", []cloud.Node{
		{Identity: cloud.Identity{Deployment: "test", Job: s.recovered, Attempt: 3}, ID: "a-93b1d02c77aa", Provider: "local", Region: "a", Zone: "a", State: cloud.Running, CreatedAt: time.Now().Add(-42 * time.Minute)},
		{Identity: cloud.Identity{Deployment: "test", Job: s.failed, Attempt: 1}, ID: "a-0c51f00ba4ff", Provider: "local", Region: "a", Zone: "a", State: cloud.Running, CreatedAt: time.Now().Add(-66 * time.Minute)},
	}, "")
	w.View("local", "b", []cloud.Node{
		{Identity: cloud.Identity{Deployment: "test", Job: s.running, Attempt: 1}, ID: "b-7f01c9de5512", Provider: "local", Region: "b", Zone: "b", State: cloud.Running, CreatedAt: time.Now().Add(-11 * time.Minute)},
	}, "")
	if err := w.Store.PutWorker(t.Context(), store.Worker{Name: "worker-1", Host: "build-7", PID: 4711, Version: "v0.3.0", Ready: true, Acts: 1, Looks: 184_223}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that the screens in docs/screens can be made: OUTLAST_SCREENS names the folder (make screens).
func TestScreens(t *testing.T) {
	dir := os.Getenv("OUTLAST_SCREENS")
	if dir == "" {
		t.Skip("OUTLAST_SCREENS is not set")
	}
	w := webtest.New(t, nil)
	s := showcase(t, w)
	guarded := webtest.New(t, func(c *web.Config) { c.Token = "s3cret" })
	at := w.Server.URL()
	paths := map[string]string{
		"jobs": at + "/", "job-running": at + fmt.Sprintf("/jobs/%d", s.running), "job-recovered": at + fmt.Sprintf("/jobs/%d", s.recovered),
		"job-failed": at + fmt.Sprintf("/jobs/%d", s.failed), "machines": at + "/machines", "cancel": at + fmt.Sprintf("/jobs/%d/cancel", s.running),
		"login": guarded.Server.URL() + "/login",
	}
	wanted := screens
	if os.Getenv("OUTLAST_SCREENS_ALL") != "" { // to look at all of them
		wanted = nil
		for name := range paths {
			for _, width := range []int64{390, 820, 1440} {
				wanted = append(wanted, screen{name, width, "light"}, screen{name, width, "dark"})
			}
		}
	}
	for _, one := range wanted {
		path := paths[one.name]
		b := openTab(t, path[:strings.Index(path[8:], "/")+8], one.width, 900)
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: one.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		b.open(path)
		shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", one.name, one.width, one.scheme))
		if err := os.WriteFile(file, small(t, shot), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// screen is a page at a width in a colour scheme.
type screen struct {
	name   string
	width  int64
	scheme string
}

// screens are those in docs/screens.md.
var screens = []screen{
	{"jobs", 1440, "light"}, {"jobs", 390, "dark"}, {"job-recovered", 1440, "dark"}, {"job-running", 390, "light"},
	{"job-failed", 820, "light"}, {"machines", 820, "light"}, {"cancel", 820, "dark"}, {"login", 390, "light"},
}

// small writes a picture with few colours, which takes a third of the bytes.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	in, _, err := image.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	bounds := in.Bounds()
	index := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			index[color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)]++
		}
	}
	var palette color.Palette
	for _, c := range most(index, 256) {
		palette = append(palette, c)
	}
	out := image.NewPaletted(bounds, palette)
	near := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := color.RGBAModel.Convert(in.At(x, y)).(color.RGBA)
			i, known := near[c]
			if !known {
				i = uint8(palette.Index(c))
				near[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// most are the colours that cover most of a picture.
func most(index map[color.RGBA]int, n int) []color.RGBA {
	colours := slices.Collect(maps.Keys(index))
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		return cmp.Or(index[b]-index[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	return colours[:min(n, len(colours))]
}
