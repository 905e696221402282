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

// lasted is a duration in seconds for people, "" for none.
func lasted(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return render.Duration(time.Duration(seconds * float64(time.Second)))
}
