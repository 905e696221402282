package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/outlast-dev/outlast/internal/render"
)

// SendLimit is how long a webhook may take to answer in all, redirects included.
const SendLimit = 10 * time.Second

const (
	maxRedirects = 3
	maxAnswer    = 4 << 10  // bytes that are read of an answer, of which a line is told
	maxHeader    = 64 << 10 // bytes of an answer's header
	maxLine      = 120      // bytes of that line
)

// Error says why a message was not delivered, in words that hold neither the URL nor a secret.
type Error struct {
	Text      string
	Permanent bool // the same again cannot help
}

func (e *Error) Error() string { return e.Text }

var (
	errPrivate  = errors.New("the address is not a public one")
	errRedirect = errors.New("it redirects elsewhere")
)

// Sender delivers webhooks. It is safe for concurrent use.
type Sender struct {
	client *http.Client
	agent  string
}

// NewSender makes a sender. Private lets it reach addresses of this computer and of private networks; those of links, under
// which clouds serve the credentials of machines, it never reaches.
func NewSender(private bool, version string) *Sender {
	dialer := &net.Dialer{
		Timeout: SendLimit,
		// After the name is resolved, so that no name can lead elsewhere.
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !reachable(at.Addr(), private) {
				return errPrivate
			}
			return nil
		},
	}
	return &Sender{
		agent: "outlast/" + version,
		client: &http.Client{
			Timeout:       SendLimit,
			CheckRedirect: sameHost,
			Transport: &http.Transport{ // no Proxy: it would reach what the dialer may not
				DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout: SendLimit, MaxResponseHeaderBytes: maxHeader,
				DisableKeepAlives: true, // news are rare, receivers many
			},
		},
	}
}

// sameHost follows a redirect that keeps the host and the method, and does not give up encryption.
func sameHost(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > maxRedirects, next.Method != first.Method, !strings.EqualFold(next.URL.Host, first.URL.Host),
		first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return errRedirect
	}
	return nil
}

// CheckURL refuses what is no URL of a webhook. The error does not quote it: it may hold a password.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return &Error{Text: "the URL is not one of http:// or https:// with a host", Permanent: true}
	}
	return nil
}

// PublicURL is a URL as it may be told: its scheme and host. Any other part of it may be a password; that of many chats is the
// path.
func PublicURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "a URL that cannot be read"
	}
	return render.Text(u.Scheme + "://" + u.Host)
}

// Send posts a message to a webhook, signed unless secret is "". The error is an [Error].
func (s *Sender) Send(ctx context.Context, to, secret string, m *Message, now time.Time) error {
	if err := CheckURL(to); err != nil {
		return err
	}
	content, err := m.Body()
	if err != nil {
		return &Error{Text: err.Error(), Permanent: true}
	}
	ctx, done := context.WithTimeout(ctx, SendLimit)
	defer done()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(content))
	if err != nil {
		return &Error{Text: "the URL cannot be used", Permanent: true} // the cause would quote it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", s.agent)
	req.Header.Set("Webhook-Id", m.ID())
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if secret != "" {
		signature, err := sign(secret, m.ID(), now, content)
		if err != nil {
			return &Error{Text: err.Error(), Permanent: true}
		}
		req.Header.Set("Webhook-Signature", signature)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return reason(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return nil
	}
	return &Error{Text: answered(res), Permanent: res.StatusCode == http.StatusGone}
}

// answered tells an answer other than success: its code, and the first line of what it says.
func answered(res *http.Response) string {
	text := fmt.Sprintf("it answered with HTTP %d", res.StatusCode)
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // as far as it came
	line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	if line == "" {
		return text
	}
	return text + ": " + render.Text(line)
}

// reason tells a failed call without quoting it: errors of net/http hold the URL, and those of the resolver its host.
func reason(err error) error {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errPrivate):
		return &Error{Text: errPrivate.Error() + "; the setting webhooks.private allows private ones", Permanent: true}
	case errors.Is(err, errRedirect):
		return &Error{Text: "it redirects to another host, to plain HTTP or too often, which is not followed", Permanent: true}
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return &Error{Text: fmt.Sprintf("no answer within %s", SendLimit)}
	case errors.Is(err, context.Canceled):
		return &Error{Text: "it was cut off"}
	case errors.As(err, &dns):
		return &Error{Text: "its host name cannot be resolved"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Error{Text: "the connection was refused"}
	case errors.As(err, &unknown), errors.As(err, &wrongHost), errors.As(err, &invalid):
		return &Error{Text: "its certificate is not valid"}
	case errors.As(err, &record):
		return &Error{Text: "it does not speak TLS"}
	default:
		return &Error{Text: "the connection failed"}
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
