//go:build !planted

package planted

// On reports whether a bug is to be there: never, in what is shipped.
func On(Bug) bool { return false }
