package render

import (
	"fmt"
	"time"
)

// Duration returns d with at most two units, as people say it: 850ms, 4s, 3m 20s, 2h 5m, 3d 4h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < 24*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "m")
	default:
		return two(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func two(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	n, rest := d/big, d%big/small
	if rest == 0 {
		return fmt.Sprintf("%d%s", n, bigName)
	}
	return fmt.Sprintf("%d%s %d%s", n, bigName, rest, smallName)
}

// Ago says how long ago something was, in one unit: just now, 40s ago, 3m ago, 2h ago, 5d ago.
func Ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	default:
		return fmt.Sprintf("%dd ago", d/(24*time.Hour))
	}
}
