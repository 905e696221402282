package main

import "github.com/outlast-dev/outlast/internal/job"

// palette colours text, or does not.
type palette struct{ on bool }

func (p palette) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) dim(s string) string    { return p.paint("2", s) }
func (p palette) bold(s string) string   { return p.paint("1", s) }
func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) cyan(s string) string   { return p.paint("36", s) }

// status colours text that tells a status.
func (p palette) status(s job.Status, text string) string {
	switch {
	case s == job.Succeeded:
		return p.green(text)
	case s.Failure():
		return p.red(text)
	case s == job.Running:
		return p.cyan(text)
	case s == job.Recovering || s == job.Cancelling:
		return p.yellow(text)
	default:
		return text
	}
}
