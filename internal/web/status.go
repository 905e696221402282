package web

import (
	"html/template"
	"strings"

	"github.com/outlast-dev/outlast/internal/job"
)

// look is how a status looks: a class for its colour, and a shape, so that nobody needs to tell colours apart.
type look struct {
	class  string
	colour string // of the icon in the browser's tab
	shape  string // within 16 by 16
}

const (
	ring   = `<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="2"/>`
	cross  = `<path d="M3.5 3.5l9 9m0-9l-9 9" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round"/>`
	orange = "#bf6a02"
	red    = "#cf222e"
	grey   = "#6e7781"
)

// looks is how each status looks.
var looks = map[job.Status]look{
	job.Pending:    {"s-pending", grey, ring},
	job.Starting:   {"s-starting", "#8250df", ring + `<circle cx="8" cy="8" r="2.5" fill="currentColor"/>`},
	job.Running:    {"s-running", "#0969da", `<path d="M4 2.5v11l9.5-5.5z" fill="currentColor"/>`},
	job.Recovering: {"s-recovering", orange, `<path d="M13 8a5 5 0 1 1-1.6-3.7" fill="none" stroke="currentColor" stroke-width="2"/><path d="M14.5 1.5v5h-5z" fill="currentColor"/>`},
	job.Cancelling: {"s-cancelling", orange, `<rect x="3" y="3" width="10" height="10" fill="none" stroke="currentColor" stroke-width="2"/>`},
	job.Succeeded:  {"s-succeeded", "#1a7f37", `<path d="M2.5 8.5l3.5 4 7.5-9" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/>`},
	job.Cancelled:  {"s-cancelled", grey, `<rect x="3" y="3" width="10" height="10" fill="currentColor"/>`},
}

// lookOf is that of a status; all failures look alike, their words tell them apart.
func lookOf(s job.Status) look {
	if l, ok := looks[s]; ok {
		return l
	}
	return look{"s-failed", red, cross}
}

func statusClass(s job.Status) string { return lookOf(s).class }

// icon is the shape of a status, to stand before its word.
func icon(s job.Status) template.HTML {
	return template.HTML(`<svg class="ico" viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">` + lookOf(s).shape + `</svg>`)
}

// iconFile is the name of the icon for the browser's tab.
func iconFile(s job.Status) string {
	if s == "" {
		return "outlast.svg"
	}
	return "status-" + strings.ToLower(string(s)) + ".svg"
}

func favicon(s job.Status) []byte {
	l := lookOf(s)
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" color="` + l.colour + `">` + l.shape + `</svg>`)
}
