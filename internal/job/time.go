package job

import "time"

// Time is a point in time in milliseconds since the Unix epoch, by the clock of the
// store. Records hold no other clock, so that no two workers' clocks are compared.
// The zero Time means "not yet".
type Time int64

// TimeOf converts a time.Time.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Std converts to a time.Time.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)) }

// IsZero reports whether t was never set.
func (t Time) IsZero() bool { return t == 0 }

// Add returns t+d, truncated to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// Sub returns t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Millisecond }
