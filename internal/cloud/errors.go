package cloud

import (
	"errors"
	"fmt"
	"time"

	"github.com/outlast-dev/outlast/internal/job"
	"github.com/outlast-dev/outlast/internal/planted"
)

// Error is a classified failure of a provider call. Class says what may be done about it.
type Error struct {
	Op    string // "create", "list", ...
	Class job.Class
	Scope string // for Capacity and Quota: "zone", "region", "type" or "cloud"
	Err   error
	Wait  time.Duration // set if the call was not made since its turn has not come: how long to wait
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v (%s)", e.Op, e.Err, e.Class) }

// Unwrap returns the error underneath.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err. What is not known is Transient: an error that nobody understands
// must not end a job.
func ClassOf(err error) job.Class {
	var e *Error
	if errors.As(err, &e) && e.Class != "" {
		return e.Class
	}
	return job.Transient
}

// FaultOf returns err as it is kept in records, or nil for nil.
func FaultOf(err error) *job.Fault {
	if err == nil {
		return nil
	}
	f := &job.Fault{Class: ClassOf(err), Text: err.Error()}
	if planted.On(planted.G10) && f.Class == job.Transient {
		f.Class = job.Denied
	}
	var e *Error
	if errors.As(err, &e) {
		f.Scope, f.Wait = e.Scope, e.Wait
	}
	return f
}

// IsCapacity reports whether err says that there is no such machine there now.
func IsCapacity(err error) bool { return err != nil && ClassOf(err) == job.Capacity }

// IsPermanent reports whether repeating the same call cannot help.
func IsPermanent(err error) bool { return err != nil && ClassOf(err).Permanent() }
