package didyoumean

import "testing"

// Ensure slips are understood, and what is no slip is left alone.
func TestNearest(t *testing.T) {
	names := []string{"resources", "run", "setup", "secrets", "workdir", "log_level"}
	for name, want := range map[string]string{
		"resorces": "resources", "Resource": "resources", "ressources": "resources", "worker": "workdir", "log-level": "log_level", "secretes": "secrets",
		"rum": "run", "rnu": "run", "seutp": "setup", "x": "", "completely": "", "": "", "workd": "workdir",
		"a name that is much longer than any field of a job file has ever been": "",
	} {
		if got := Nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
