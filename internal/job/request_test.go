package job

import "testing"

// TestPlaceOfKey ensures that people read of an offer what they read of it elsewhere, and that a key of another form is
// not hidden.
func TestPlaceOfKey(t *testing.T) {
	for _, o := range []Offer{
		{Provider: "local", Region: "a", Zone: "a", Type: "local"},
		{Provider: "aws", Region: "us-east-1", Zone: "us-east-1a", Type: "p4d.24xlarge", Spot: true},
	} {
		if got := placeOfKey(o.Key()); got != o.String() {
			t.Errorf("%s is told as %q, want %q", o.Key(), got, o.String())
		}
	}
	if got := placeOfKey("local/a"); got != "local/a" {
		t.Errorf("told as %q", got)
	}
}
