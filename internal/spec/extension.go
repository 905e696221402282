package spec

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
)

// The fields of job files that SkyPilot does not have.

const (
	maxDuration = 10 * 365 * 24 * time.Hour // what is longer is a slip
	maxGrace    = time.Hour
	maxWebhooks = 10
	maxURL      = 2000
	forever     = "forever"
)

var (
	durationForm = regexp.MustCompile(`^([0-9]{1,9}[smhdwSMHDW] ?)+$`)
	durationPart = regexp.MustCompile(`([0-9]+)([smhdw])`)
	units        = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
)

// duration reads a time such as 90m, 1h30m or 2d. A number alone would be seconds for some and minutes for others.
func (d *decoder) duration(n *node, path string, most time.Duration) time.Duration {
	const right = "write a number with a unit, such as 30s, 90m, 2h or 1d"
	if n.kind != kindText || !durationForm.MatchString(n.text) {
		d.add(n.at, path, "is "+describe(n), right)
		return 0
	}
	var sum time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(strings.ToLower(n.text), -1) {
		count, err := strconv.ParseInt(part[1], 10, 64)
		unit := units[part[2]]
		if err != nil || time.Duration(count) > most/unit {
			sum = most + 1
			break
		}
		sum += time.Duration(count) * unit
	}
	switch {
	case sum > most:
		d.add(n.at, path, "is "+quote(n.text), "it is at most "+short(most))
		return 0
	case sum == 0:
		d.add(n.at, path, "is "+quote(n.text), "it must be more than 0; leave it out for the default")
	}
	return sum
}

// short writes a limit in the largest unit that fits.
func short(t time.Duration) string {
	if t >= 24*time.Hour {
		return fmt.Sprintf("%dd", t/(24*time.Hour))
	}
	return fmt.Sprintf("%dh", t/time.Hour)
}

// jobFields reads what concerns the whole job.
func (d *decoder) jobFields(n *node) {
	r := &d.job.Request
	if v := n.get("webhooks"); v != nil {
		r.Webhooks = d.webhooks(v)
	}
	if v := n.get("log_retention"); v != nil {
		if strings.EqualFold(v.text, forever) && v.kind == kindText {
			r.LogRetention = -1
		} else {
			r.LogRetention = d.duration(v, "log_retention", maxDuration)
		}
	}
	if v := n.get("redact_secrets"); v != nil {
		before := len(d.problems) + d.more
		r.ShowSecrets = !d.boolean(v, "redact_secrets") && len(d.problems)+d.more == before
	}
}

// notJobFields reports what concerns the whole job in a task of a chain.
func (d *decoder) notJobFields(n *node) {
	for _, f := range jobFields {
		if v := n.get(f.name); v != nil {
			d.add(v.at, f.name, "concerns the whole job, not one task", "write it into a first document, beside name, that is no task")
		}
	}
}

// signalNames are those that a notice may be handed on as.
func signalNames() []string { return []string{"TERM", "INT", "HUP", "USR1", "USR2"} }

// onNotice reads a signal, or a mapping.
func (d *decoder) onNotice(n *node) job.OnNotice {
	const path = "on_notice"
	if n.kind != kindMapping {
		return job.OnNotice{Signal: d.signal(n, path)}
	}
	d.checkFields(n, path, noticeSection)
	var out job.OnNotice
	if v := n.get("signal"); v != nil {
		out.Signal = d.signal(v, path+".signal")
	}
	if v := n.get("run"); v != nil {
		out.Run = d.asText(v, path+".run")
	}
	return out
}

// signal reads the name of a signal, with or without SIG, or none.
func (d *decoder) signal(n *node, path string) string {
	name := strings.TrimPrefix(strings.ToUpper(n.text), "SIG")
	switch {
	case n.kind == kindText && strings.EqualFold(n.text, none):
		return none
	case n.kind == kindText && slices.Contains(signalNames(), name):
		return name
	}
	d.add(n.at, path, "is "+describe(n), choice(name, append(signalNames(), none)))
	return ""
}

// callbackEvents are those of SkyPilot's event_callback that are no statuses.
var callbackEvents = []string{"submitted", "started", "recovered"}

// eventNames are what a webhook can be told of.
func eventNames() []string {
	out := slices.Clone(callbackEvents)
	for _, s := range job.Statuses {
		out = append(out, strings.ToLower(string(s)))
	}
	return out
}

// webhooks reads a list of them.
func (d *decoder) webhooks(n *node) []job.Webhook {
	const path = "webhooks"
	if n.kind != kindList || len(n.items) == 0 {
		d.add(n.at, path, "is "+describe(n), "it is a list, such as [{url: https://example.com/hook}]")
		return nil
	}
	if len(n.items) > maxWebhooks {
		d.add(n.at, path, fmt.Sprintf("has %d entries", len(n.items)), fmt.Sprintf("it has at most %d", maxWebhooks))
		return nil
	}
	var out []job.Webhook
	for i, item := range n.items {
		out = append(out, d.webhook(item, fmt.Sprintf("%s[%d]", path, i)))
	}
	return out
}

func (d *decoder) webhook(n *node, path string) job.Webhook {
	if n.kind == kindText {
		return job.Webhook{URL: d.hookURL(n, path)}
	}
	var out job.Webhook
	if !d.isMapping(n, path) {
		return out
	}
	d.checkFields(n, path, webhookSection)
	address, secret := n.get("url"), n.get("url_secret")
	switch {
	case address != nil && secret != nil:
		d.add(secret.at, path+".url_secret", "is given together with url", "keep one of the two")
	case address != nil:
		out.URL = d.hookURL(address, path+".url")
	case secret != nil:
		out.URLSecret = d.secretName(secret, path+".url_secret")
	default:
		d.add(n.at, path, "has no address", "write url, or url_secret with the name of a secret of the job")
	}
	if v := n.get("sign_with"); v != nil {
		out.SignWith = d.secretName(v, path+".sign_with")
	}
	if v := n.get("events"); v != nil {
		out.Events = d.events(v, path+".events")
	}
	return out
}

// hookURL reads an address. It is stored in clear, so it holds no password; nor does an error show it.
func (d *decoder) hookURL(n *node, path string) string {
	s := d.asText(n, path)
	if s == "" {
		return ""
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(s) > maxURL || badWord(s) != "":
		d.add(n.at, path, "is not a URL that can be told", "write https://HOST/PATH")
	case u.User != nil:
		d.add(n.at, path, "holds a user or a password, and is stored in clear", "put the URL into a secret, and the name of it into url_secret")
	default:
		return s
	}
	return ""
}

// secretName reads the name of a secret. Whether a task has it is known when all were read.
func (d *decoder) secretName(n *node, path string) string {
	name := d.asText(n, path)
	if name != "" {
		d.wanted = append(d.wanted, wantedSecret{name: name, path: path, at: n.at})
	}
	return name
}

// wantedSecret is a secret that something names.
type wantedSecret struct {
	name, path string
	at         position
}

// checkWanted reports the secrets that are named and that no task has.
func (d *decoder) checkWanted() {
	for _, w := range d.wanted {
		if !d.secrets[w.name] {
			d.add(w.at, w.path, quote(w.name)+" is not a secret of this job", "write its name under secrets, and give it with --secret")
		}
	}
}

// events reads a word or a list of words.
func (d *decoder) events(n *node, path string) []string {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	var out []string
	for i, item := range items {
		at := path
		if n.kind == kindList {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		word := strings.ToLower(item.text)
		if item.kind != kindText || !slices.Contains(eventNames(), word) {
			d.add(item.at, at, "is "+describe(item), choice(word, eventNames()))
			continue
		}
		if !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
