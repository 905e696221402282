package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLimits ensures that limits are read as they are documented, that a provider without any has its own, and that a
// mistake is told with what would be right.
func TestLimits(t *testing.T) {
	t.Parallel()
	sim := defaultLimits["sim"]
	for _, c := range []struct {
		set      []string
		provider string
		want     CallLimits
	}{
		{nil, "local", CallLimits{}},
		{nil, "sim", sim},
		{[]string{"sim.write=20"}, "sim", CallLimits{Write: Limit{20, 40}, Read: sim.Read}},
		{[]string{"sim.write=0.1", "sim.read=5:7"}, "sim", CallLimits{Write: Limit{0.1, 1}, Read: Limit{5, 7}}},
		{[]string{"sim.write=0", "aws.read=1"}, "sim", CallLimits{Write: Limit{0, 1}, Read: sim.Read}},
		{[]string{"local.write=3"}, "local", CallLimits{Write: Limit{3, 6}}},
	} {
		if err := validateLimits(c.set); err != nil {
			t.Errorf("%v: %v", c.set, err)
		}
		if diff := cmp.Diff(c.want, Config{Limits: c.set}.LimitsOf(c.provider)); diff != "" {
			t.Errorf("%v for %s (-want +got):\n%s", c.set, c.provider, diff)
		}
	}
	for _, bad := range []string{"", "sim", "sim.write", "sim=3", "sim.both=3", ".write=3", "sim.write=-1", "sim.write=NaN", "sim.write=1:0", "sim.write=1e9", "sim.write=1:x"} {
		if err := validateLimits([]string{bad}); err == nil || !strings.Contains(err.Error(), `"aws.write=20"`) {
			t.Errorf("%q gave %v", bad, err)
		}
	}
	if err := validateLimits([]string{"sim.write=1", "sim.write=2"}); err == nil {
		t.Error("twice the same limit was taken")
	}
}
