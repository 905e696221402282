package hook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/outlast-dev/outlast/internal/job"
)

// failed is a message of a task that has failed.
func failed() *Message {
	return &Message{
		Deployment: "d1", Seq: 3,
		Head: job.Head{ID: 7, Name: "train", User: "ann", SubmittedAt: 1_700_000_000_000, Tasks: []job.TaskHead{{Name: "a"}, {Name: "b"}}},
		News: job.News{
			Event: job.Event{At: 1_700_000_060_000, Kind: "status", Task: 1, Attempt: 2, From: "RUNNING", To: "FAILED", Cause: job.Cause{Code: job.CodeUserExit, Text: "the user's code ended with exit code 1", Evidence: "run: exit code 1"}},
			Job:   job.Failed, Final: true, StartedAt: 1_700_000_010_000, EndedAt: 1_700_000_060_000, RunMS: 50_000, Recoveries: 1, Where: "local/a on-demand", Machine: "vm-1",
		},
	}
}

// TestBody ensures the shape of what a webhook is sent, which is part of the public interface.
func TestBody(t *testing.T) {
	t.Parallel()
	got, err := failed().Body()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"failed","timestamp":"2023-11-14T22:14:20Z","text":"job 7 train, task 2 of 2, has failed: the user's code ended with exit code 1","event":"FAILED","status":"FAILED","from":"RUNNING","cause":{"code":"user_exit","text":"the user's code ended with exit code 1","evidence":"run: exit code 1"},"deployment":"d1","job":{"id":7,"name":"train","user":"ann","status":"FAILED","final":true,"submitted_at":"2023-11-14T22:13:20Z","tasks":2},"task":{"index":1,"name":"b","attempt":2,"recoveries":1,"started_at":"2023-11-14T22:13:30Z","ended_at":"2023-11-14T22:14:20Z","duration_s":50,"where":"local/a on-demand"}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNames ensures what each change of status is called, which webhooks hear of it, and that each has a sentence.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to job.Status
		name     string
		wanted   []string
	}{
		{"", job.Pending, "SUBMITTED", []string{"pending", "submitted"}},
		{job.Failed, job.Pending, "SUBMITTED", []string{"pending"}},
		{job.Pending, job.Starting, "STARTING", []string{"starting"}},
		{job.Starting, job.Running, "STARTED", []string{"running", "started"}},
		{job.Running, job.Recovering, "RECOVERING", []string{"recovering"}},
		{job.Recovering, job.Running, "RECOVERED", []string{"running", "recovered"}},
		{job.Running, job.Succeeded, "SUCCEEDED", []string{"SUCCEEDED"}},
		{job.Running, job.Failed, "FAILED", []string{"failed"}},
		{job.Running, job.FailedSetup, "FAILED", []string{"failed", "failed_setup"}},
		{job.Starting, job.FailedNoResource, "FAILED", []string{"failed_no_resource"}},
		{job.Running, job.Cancelling, "CANCELLING", []string{"cancelling"}},
		{job.Cancelling, job.Cancelled, "CANCELLED", []string{"cancelled"}},
	} {
		m := failed()
		m.News.From, m.News.To = string(tt.from), string(tt.to)
		if got := m.News.Name(); got != tt.name {
			t.Errorf("%s to %s is called %s, want %s", tt.from, tt.to, got, tt.name)
		}
		for _, event := range tt.wanted {
			if !Wanted([]string{"x", event}, &m.News) {
				t.Errorf("who asks for %s is not told of %s", event, tt.to)
			}
		}
		if Wanted([]string{"x"}, &m.News) || !Wanted(nil, &m.News) {
			t.Errorf("%s: none means all, another means not", tt.to)
		}
		if sentences[tt.name] == "" {
			t.Errorf("%s has no sentence", tt.name)
		}
	}
}

// receiver is a server that answers as told and keeps what it was sent.
func receiver(t *testing.T, answer http.HandlerFunc) (url string, got chan *http.Request, bodies chan []byte) {
	t.Helper()
	got, bodies = make(chan *http.Request, 8), make(chan []byte, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- r
		bodies <- b
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, got, bodies
}

// TestSigned ensures that what is sent passes the check of the standard's own library, for secrets in its form and any other,
// and not with another secret.
func TestSigned(t *testing.T) {
	t.Parallel()
	to, got, bodies := receiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	whsec := secretPrefix + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	for _, secret := range []string{whsec, "any other words"} {
		if err := NewSender(true, "v1").Send(t.Context(), to+"/hook?x=1", secret, failed(), time.Now()); err != nil {
			t.Fatal(err)
		}
		r, body := <-got, <-bodies
		check := func(secret string) error {
			w, err := standardwebhooks.NewWebhook(secret)
			if !strings.HasPrefix(secret, secretPrefix) {
				w, err = standardwebhooks.NewWebhookRaw([]byte(secret))
			}
			if err != nil {
				t.Fatal(err)
			}
			return w.Verify(body, r.Header)
		}
		if err := check(secret); err != nil {
			t.Errorf("the standard's check: %v", err)
		}
		if check("wrong words") == nil {
			t.Error("another secret passes the check")
		}
		if r.Header.Get("Webhook-Id") != "msg_d1_7_3" || r.Header.Get("Content-Type") != "application/json" || !json.Valid(body) || r.URL.RawQuery != "x=1" {
			t.Errorf("sent %v to %s: %s", r.Header, r.URL, body)
		}
	}
}

// TestReceiversThatFail ensures that each way in which a receiver can fail is told in words without the URL, and whether it is
// worth another try.
func TestReceiversThatFail(t *testing.T) {
	t.Parallel()
	elsewhere, elsewhereGot, _ := receiver(t, func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct {
		name      string
		answer    http.HandlerFunc
		want      string
		permanent bool
	}{
		{"500", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "\x1b[31mbroken\nmore", http.StatusInternalServerError)
		}, `it answered with HTTP 500: \x1b[31mbroken`, false},
		{"404 without a word", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "it answered with HTTP 404", false},
		{"410", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }, "it answered with HTTP 410", true},
		{"a long answer", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for range 1000 {
				if _, err := fmt.Fprint(w, strings.Repeat("x", 10_000)); err != nil {
					return
				}
			}
		}, "HTTP 500: " + strings.Repeat("x", maxLine) + "…", false},
		{"a redirect to another host", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}, "it redirects to another host", true},
		{"one that loses the body", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) }, "it redirects", true},
		{"a circle", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}, "it redirects", true},
		{"a hang-up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the connection failed", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			to, _, _ := receiver(t, tt.answer)
			err := NewSender(true, "v1").Send(t.Context(), to+"/path?token=hidden", "", failed(), time.Now())
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Text, tt.want) || e.Permanent != tt.permanent {
				t.Errorf("%#v", err)
			}
			if strings.Contains(e.Text, "hidden") || strings.Contains(e.Text, "127.0.0.1") {
				t.Errorf("it tells the URL: %s", e.Text)
			}
		})
	}
	if len(elsewhereGot) > 0 {
		t.Error("a redirect to another host was followed")
	}
}

// TestSlowReceiver ensures that one who hangs before, or drips within, its answer is given up at the end of the time, which is
// here that of the caller.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drips": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(".")); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, _, _ := receiver(t, answer)
			ctx, done := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer done()
			err := NewSender(true, "v1").Send(ctx, to, "", failed(), time.Now())
			var e *Error
			if !errors.As(err, &e) || e.Permanent {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestWhereItMayGo ensures which addresses a webhook reaches: without leave none of this computer or a private network, and
// never one under which a cloud serves credentials; and that the check is of the address, whatever the name.
func TestWhereItMayGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		address        string
		public, likely bool // without leave, with it
	}{
		{"93.184.216.34", true, true}, {"2606:2800:220:1::1", true, true},
		{"127.0.0.1", false, true}, {"::1", false, true}, {"::ffff:127.0.0.1", false, true},
		{"10.1.2.3", false, true}, {"192.168.0.1", false, true}, {"172.16.0.1", false, true}, {"fd00::1", false, true}, {"fec0::1", false, true},
		{"100.64.0.1", false, true}, {"198.18.0.1", false, true}, {"192.0.0.1", false, true}, {"240.0.0.1", false, true},
		{"64:ff9b::7f00:1", false, true}, {"64:ff9b:1::7f00:1", false, true}, {"2002:7f00:1::", false, true}, {"::7f00:1", false, true},
		{"100.100.100.200", false, false}, {"fd00:ec2::254", false, false}, {"fd20:ce::254", false, false}, {"168.63.129.16", false, false}, {"192.0.0.192", false, false},
		{"64:ff9b::a9fe:a9fe", false, false}, {"64:ff9b:1::a9fe:a9fe", false, false}, {"2002:a9fe:a9fe::", false, false}, {"::a9fe:a9fe", false, false}, {"0.1.2.3", false, false},
		{"169.254.169.254", false, false}, {"::ffff:169.254.169.254", false, false}, {"fe80::1", false, false},
		{"0.0.0.0", false, false}, {"::", false, false}, {"224.0.0.1", false, false}, {"255.255.255.255", false, false},
	} {
		ip := netip.MustParseAddr(tt.address)
		if got := reachable(ip, false); got != tt.public {
			t.Errorf("%s without leave: %t", tt.address, got)
		}
		if got := reachable(ip, true); got != tt.likely {
			t.Errorf("%s with leave: %t", tt.address, got)
		}
	}
	to, got, _ := receiver(t, func(http.ResponseWriter, *http.Request) {})
	for _, u := range []string{to, strings.Replace(to, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest/meta-data"} {
		err := NewSender(false, "v1").Send(t.Context(), u, "", failed(), time.Now())
		var e *Error
		if !errors.As(err, &e) || !e.Permanent || !strings.Contains(e.Text, "webhooks.private") {
			t.Errorf("%s: %v", u, err)
		}
	}
	if len(got) > 0 {
		t.Error("a server of this computer was reached")
	}
	for _, u := range []string{"", "ftp://x/", "file:///etc/passwd", "http://", "://", "gopher://x"} {
		if CheckURL(u) == nil {
			t.Errorf("%q is taken for the URL of a webhook", u)
		}
	}
	if got := PublicURL("https://ann:secret@chat.example:8443/T0/B0/xyz?token=1#f"); got != "https://chat.example:8443" {
		t.Errorf("it is told as %s", got)
	}
}

// TestSchedules ensures that waits grow, are capped, spread, and that a webhook is tried for about a day.
func TestSchedules(t *testing.T) {
	t.Parallel()
	total := time.Duration(0)
	for n := 1; n < WebhookSchedule.Tries; n++ {
		least, most := WebhookSchedule.Wait(n, 0), WebhookSchedule.Wait(n, 0.999)
		if n > 1 && least < WebhookSchedule.Wait(n-1, 0) || least >= most || most > WebhookSchedule.Most*6/5 {
			t.Errorf("wait %d is %s to %s", n, least, most)
		}
		total += WebhookSchedule.Wait(n, 0.5)
	}
	if total < 20*time.Hour || total > 30*time.Hour {
		t.Errorf("tried for %s", total)
	}
}
