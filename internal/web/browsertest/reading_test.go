package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/web/webtest"
)

// Ensure that without a script everything can be read, output included, and a job can be cancelled.
func TestWithoutJavaScript(t *testing.T) {
	w := webtest.New(t, nil)
	id := w.Submit(job.Request{Name: "talks", User: "ada"})
	w.Runs(id, job.Offer{Provider: "local", Region: "a"}, time.Minute)
	var text strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&text, "line %d of the output, long enough for two pages\n", i)
	}
	w.Says(id, 0, 1, 0, text.String())
	b := openTab(t, w.Server.URL(), 820, 900)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open(w.Server.URL() + "/")
	b.has("tr", "talks")
	b.click("tbody a")
	b.has("#log", "line 1999")
	b.has("#timeline", "try 1 local/a")
	b.click("#more a") // the whole output
	b.has("h1", "Output of try 1")
	b.has("pre", "line 0")
	b.click(`a[rel="next"]`)
	b.has("pre", "line 1999")
	b.write("#q", "LINE 1234")
	b.click(".find button")
	b.has("mark", "line 1234")
	b.open(fmt.Sprintf("%s/jobs/%d", w.Server.URL(), id))
	b.click(`.actions a[href$="/cancel"]`)
	b.write("#grace", "5s")
	b.click("#do")
	b.has(".banner", "The job is being cancelled")
	if done := w.Actions.Done(); len(done) != 1 || done[0] != "cancel 1 by web grace 5s" {
		t.Errorf("was done: %q", done)
	}
}

// Ensure that a page that renews itself leaves focus, what is being typed and the place in the page alone, and can be
// told to stop.
func TestRenewingLeavesTheReaderAlone(t *testing.T) {
	w := webtest.New(t, nil)
	for i := range 40 {
		w.Submit(job.Request{Name: fmt.Sprintf("job-%d", i)})
	}
	b := openTab(t, w.Server.URL(), 820, 600)
	b.open(w.Server.URL() + "/")
	value[bool](b, `(document.querySelector('[data-key="job-20"] a').focus({preventScroll: true}), scrollTo(0, 500), window.row = document.activeElement, true)`)
	w.Submit(job.Request{Name: "newcomer"})
	w.Runs(20, job.Offer{Provider: "local", Region: "a"}, time.Minute)
	b.has("tr", "newcomer")
	b.has(`[data-key="job-20"]`, "RUNNING")
	if !value[bool](b, `document.activeElement === window.row && document.activeElement.closest("tr").dataset.key === "job-20" && scrollY >= 400`) {
		t.Error("focus or place was lost")
	}
	b.write("#name", "typed")
	w.Submit(job.Request{Name: "later"})
	b.has("tr", "later")
	if got := value[string](b, `document.getElementById("name").value`); got != "typed" {
		t.Errorf("the field has %q", got)
	}
	b.click("#pause")
	if !value[bool](b, `document.getElementById("pause").getAttribute("aria-pressed") === "true"`) {
		t.Error("the pause is not told")
	}
	b.click("#pause")
	w.DB.Kill9()
	b.has("#offline", "No answer. This is how it was at")
	w.DB.Restart()
	b.wait(`document.getElementById("offline").hidden`)
}

// Ensure that the first key leads past the navigation, and each field has a name for those who do not see it.
func TestKeyboardAndNames(t *testing.T) {
	w := webtest.New(t, nil)
	id := hostileJob(w)
	b := openTab(t, w.Server.URL(), 390, 844)
	for _, path := range []string{"/", fmt.Sprintf("/jobs/%d", id), fmt.Sprintf("/jobs/%d/log", id), fmt.Sprintf("/jobs/%d/cancel", id), "/machines", "/workers"} {
		b.open(w.Server.URL() + path)
		for what, selector := range map[string]string{
			"first heading":       `document.querySelectorAll("h1").length === 1`,
			"skip link first":     `document.querySelector("a, button, input") === document.querySelector(".skip")`,
			"language":            `document.documentElement.lang === "en"`,
			"labels":              `[...document.querySelectorAll("input:not([type=hidden])")].every((i) => i.labels.length === 1)`,
			"ids once":            `[...document.querySelectorAll("[id]")].every((e) => document.querySelectorAll("#" + CSS.escape(e.id)).length === 1)`,
			"table headers":       `[...document.querySelectorAll("thead th")].every((h) => h.scope === "col")`,
			"statuses with words": `[...document.querySelectorAll(".chip")].every((c) => /[A-Z]{4}/.test(c.textContent))`,
		} {
			if !value[bool](b, selector) {
				t.Errorf("%s: %s", path, what)
			}
		}
	}
}
