package main

import (
	"time"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/render"
)

// ago is how long ago t was, "" for never.
func ago(t account.Time, now job.Time) string {
	if t == 0 {
		return ""
	}
	return render.Ago(now.Sub(job.Time(t)))
}

// when is a time in a table: how long ago, or with -o wide the date.
func (a *app) when(t account.Time, now job.Time) string {
	if t != 0 && a.wide() {
		return job.Time(t).Std().Local().Format(time.RFC3339)
	}
	return ago(t, now)
}
