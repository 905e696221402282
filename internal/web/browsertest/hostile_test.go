package browsertest

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/outlast-dev/outlast/internal/cloud"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/store"
	"github.com/outlast-dev/outlast/internal/web"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// evil is text that runs a script wherever it is taken for markup: in a text, an attribute, a script, a URL.
func evil(where string) string {
	return `"'><img src=x onerror="window.pwned='` + where + `'"><script>window.pwned="` + where + `"</script><a href="javascript:window.pwned=1">` + where + `</a>` +
		"\u202e\x1b]0;" + where + "\x07" + strings.Repeat("W", 120)
}

// hostileJob is a job of which everything that anybody can choose is hostile.
func hostileJob(w *webtest.World) job.ID {
	id := w.Submit(job.Request{
		Name: evil("name"), User: evil("user"),
		Webhooks: []job.Webhook{{URL: "https://hooks.example/" + evil("hook"), Events: []string{evil("event")}}},
		Tasks: []job.TaskRequest{
			{
				Name: evil("task"), Run: "echo " + evil("run") + "\necho done", Setup: evil("setup"), Envs: map[string]string{evil("env"): evil("value")},
				Secrets: []string{evil("secret")}, Resources: job.Resources{Any: []job.Want{{Provider: evil("provider"), Labels: map[string]string{evil("label"): evil("value")}}}},
			},
			{Name: evil("second"), Run: "true"},
		},
	})
	offer := job.Offer{Provider: evil("provider"), Region: evil("region"), Zone: evil("zone"), Type: evil("type"), Price: 0.1}
	cause := job.Cause{Code: job.CodePreempted, Text: evil("cause"), Evidence: evil("evidence")}
	w.Date(id, time.Hour)
	w.Runs(id, offer, 50*time.Minute)
	w.Loses(id, cause, 40*time.Minute)
	w.Runs(id, offer, 20*time.Minute)
	w.Says(id, 0, 1, 0, evil("archived")+"\n")
	w.Says(id, 0, 2, 0, evil("archived")+"\n\nevent: end\ndata: \"\"\n\n</pre></main>"+evil("log")+"\n")
	return id
}

// Ensure that no script of anybody else runs on a page and nothing of it is lost, wherever the text comes from: names,
// users, environment, events, output, providers, workers, or the address of the page itself. Nor is a page wider than the screen.
func TestNothingHostileRuns(t *testing.T) {
	w := webtest.New(t, nil)
	id := hostileJob(w)
	failed := w.Submit(job.Request{Name: evil("failed"), User: evil("user")})
	w.Runs(failed, job.Offer{Provider: "local", Region: "a"}, time.Minute)
	w.Ends(failed, job.Failed, job.Cause{Code: job.CodeUserExit, Text: evil("cause"), Evidence: evil("evidence")}, 3, time.Second)
	w.View("local", evil("region"), []cloud.Node{{
		Identity: cloud.Identity{Deployment: "test", Job: id, Attempt: 2}, ID: evil("machine"), Provider: evil("provider"),
		Region: evil("region"), Zone: evil("zone"), State: cloud.State(evil("state")), Reason: evil("reason"), CreatedAt: time.Now(),
	}}, evil("problem"))
	if err := w.Store.PutWorker(t.Context(), store.Worker{Name: evil("worker"), Host: evil("host"), Version: evil("version"), Why: evil("why")}); err != nil {
		t.Fatal(err)
	}
	at := w.Server.URL()
	page := at + "/jobs/1"
	for _, width := range []int64{390, 1440} {
		b := openTab(t, at, width, 844)
		for path, shows := range map[string]string{
			at + "/": "name", at + "/?user=" + url.QueryEscape(evil("user")): "name", at + "/?name=" + url.QueryEscape(evil("name")): "name",
			at + "/?status=" + url.QueryEscape(evil("status")): "is no status", at + "/?since=" + url.QueryEscape(evil("since")): "no time to go back to",
			page + "?said=" + url.QueryEscape(evil("said")): "cause", page + "/log": "log", page + "/log?attempt=1": "archived",
			page + "/log?q=" + url.QueryEscape("</PRE>"): "</pre>", page + "/log?q=" + url.QueryEscape(evil("q")): "0 lines",
			page + "/cancel": "name", page + "/" + url.PathEscape(evil("action")): "no such page", at + "/jobs/2": "cause", at + "/machines": "machine",
			at + "/workers": "worker", at + "/" + url.PathEscape(evil("path")): "no such page",
		} {
			b.open(path)
			b.has("body", shows)
			b.sane()
		}
		b.open(page)
		value[bool](b, `document.querySelectorAll("details").forEach((d) => d.open = true), true`)
		b.has("#request", "img src=x")
		b.wait(`document.getElementById("log").dataset.stream`)
		text := evil("live") + "\n"
		kept := int64(len(evil("archived") + "\n\nevent: end\ndata: \"\"\n\n</pre></main>" + evil("log") + "\n"))
		if err := w.Store.TailAppend(context.Background(), id, 0, 2, kept, []byte(text)); err != nil {
			t.Fatal(err)
		}
		b.has("#log", "live")
		b.sane()
		if links := value[[]string](b, `[...document.querySelectorAll("a, form, img, script, link")].map((e) => e.getAttribute("href") || e.getAttribute("src") || e.getAttribute("action") || "").filter((u) => u && !/^[/#]/.test(u))`); len(links) > 0 {
			t.Errorf("links that lead elsewhere: %q", links)
		}
	}
}

// Ensure that a login with a hostile name, and on the way to a hostile place, runs nothing and leads nowhere else.
func TestHostileLogin(t *testing.T) {
	w := webtest.New(t, func(c *web.Config) { c.Token = "s3cret" })
	b := openTab(t, w.Server.URL(), 390, 844)
	b.open(w.Server.URL() + "/login?next=" + url.QueryEscape("//evil.example/"+evil("next")))
	b.write("#token", "wrong")
	b.do(chromedp.SetValue(chromedp.CSS("#name"), evil("who")))
	b.click("main button")
	b.has(".banner", "not the token")
	b.sane()
	b.write("#token", "s3cret")
	b.click("main button")
	b.has("h1", "Jobs")
	b.has(".tools", "Log out")
	b.sane()
}
