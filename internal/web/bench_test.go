package web_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// BenchmarkJobsPage measures the list of jobs, and of jobs narrowed down, with 100,000 jobs in the store: what the half of the
// pages are quicker than, and their size.
func BenchmarkJobsPage(b *testing.B) {
	w := webtest.New(b, nil)
	if _, err := w.Store.Submit(b.Context(), store.Submission{Request: request("train"), Count: 100_000}); err != nil {
		b.Fatal(err)
	}
	one := w.Submit(request("needle"))
	for name, path := range map[string]string{
		"all": "/", "status": "/?status=PENDING", "user": "/?user=ada", "far": "/?before=50000", "rare": "/?name=needle", "job": jobPath(one),
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			bytes := 0
			for b.Loop() {
				start := time.Now()
				r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, w.Server.URL()+path, nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				n, err := discard(resp)
				if err != nil || resp.StatusCode != http.StatusOK {
					b.Fatalf("%d %v", resp.StatusCode, err)
				}
				took, bytes = append(took, time.Since(start)), n
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(bytes), "page-B")
		})
	}
}

func discard(resp *http.Response) (int, error) {
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	return int(n), err
}
