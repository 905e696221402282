// Package version tells which build this is.
package version

import "runtime/debug"

// version is set by the linker in a build by make.
var version string

// String is the version of this build: what the linker was told, else the commit, else "dev".
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "dev"
}
