package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"
)

// patience bounds one test. It is long so that a slow machine fails none.
const patience = 2 * time.Minute

// chromium is the browser that all tests share, each with a profile of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	stop := func() {}
	if os.Getenv("OUTLAST_NO_BROWSER") == "" {
		path := findChromium()
		if path == "" {
			fmt.Fprintln(os.Stderr, "these tests need Chromium: install it (Debian: apt install chromium), or set OUTLAST_NO_BROWSER=1 to leave them out")
			os.Exit(1)
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-dev-shm-usage", true))
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // it refuses to run with a sandbox then
		}
		alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), options...)
		browser, stopBrowser := chromedp.NewContext(alloc)
		if err := chromedp.Do(browser); err != nil {
			fmt.Fprintln(os.Stderr, "start chromium:", err)
			os.Exit(1)
		}
		chromium = browser //nolint:fatcontext // made once
		stop = func() {
			stopBrowser()
			stopAlloc()
		}
	}
	code := m.Run()
	stop()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// tab is a browser of its own for one test, that watches what no page of ours may do.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string
}

// openTab opens a tab. The only server that its pages may speak to is the one given.
func openTab(t *testing.T, server string, width, height int64) *tab {
	t.Helper()
	if chromium == nil {
		t.Skip("OUTLAST_NO_BROWSER is set")
	}
	ctx, stop := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	ctx, done := context.WithTimeout(ctx, patience)
	t.Cleanup(done)
	b := &tab{t: t, ctx: ctx}
	b.do() // opens it
	if err := chromedp.Listen(ctx, func(event any) { b.watch(event, server) }); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `window.violations = [];
		addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));`})
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			t.Error(f)
		}
	})
	return b
}

// watch notes what must not happen.
func (b *tab) watch(event any, server string) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, server+"/") {
			b.fault("a request to " + e.Request.URL)
		}
	case *page.EventJavascriptDialogOpening:
		b.fault("a dialog: " + e.Message)
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *runtime.EventExceptionThrown:
		b.fault("a script failed: " + e.ExceptionDetails.Text)
	}
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *tab) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

// do runs actions, and fails the test with the page as it is if one fails.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// open loads a page, and ensures that nothing on it broke its policy.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
	b.sane()
}

// pageState is what sane looks at.
type pageState struct {
	Pwned      bool
	Violations []string
	Wide       []string // elements beyond the right edge
	URL        string
}

// sane ensures that no foreign script ran on the page, and that it is not wider than the screen.
func (b *tab) sane() {
	b.t.Helper()
	state := value[pageState](b, `({
		pwned: !!window.pwned, violations: window.violations || [], url: location.href,
		wide: document.documentElement.scrollWidth <= innerWidth ? [] :
			[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)),
	})`)
	if state.Pwned {
		b.t.Errorf("%s: a foreign script ran", state.URL)
	}
	if len(state.Violations) > 0 {
		b.t.Errorf("%s breaks its policy: %q", state.URL, state.Violations)
	}
	if len(state.Wide) > 0 {
		b.t.Errorf("%s is wider than the screen: %q", state.URL, state.Wide[:min(5, len(state.Wide))])
	}
}

// wait waits until an expression is true, over changes of the page.
func (b *tab) wait(expression string) {
	b.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")")); err == nil && ok {
			return
		}
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("waited in vain for %s", expression)
		case <-look.C:
		}
	}
}

// has waits until the text of an element has something in it, however it is broken into lines.
func (b *tab) has(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.replace(/[ \n\t]+/g, " ").includes(%q))`, selector, text))
}

// value evaluates an expression.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// click clicks the first element that a selector finds.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// write types text into a field.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}
