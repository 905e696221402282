package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/outlast-dev/outlast/internal/account"
	"github.com/outlast-dev/outlast/internal/job"
)

// TestRuledOutIsShort ensures that a catalogue with hundreds of kinds of machines does not push the plan off the screen,
// and that nothing is held back without a word.
func TestRuledOutIsShort(t *testing.T) {
	var offers []account.PlannedOffer
	for i := range 12 {
		o := job.Offer{Provider: "local", Region: "a", Type: fmt.Sprintf("kind-%d", i)}
		offers = append(offers, account.PlannedOffer{Offer: o, Reason: fmt.Sprintf("reason %d", i)})
	}
	var out bytes.Buffer
	a := newApp(strings.NewReader(""), &out, &out)
	if err := a.ruledOut(offers); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1+shownReasons+1 || lines[len(lines)-1] != "  ... and 2 more reasons (-o wide shows all)" {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
	a.flags.output = "wide"
	out.Reset()
	if err := a.ruledOut(offers); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "kind-11 on-demand: reason 11") {
		t.Errorf("-o wide leaves something out:\n%s", out.String())
	}
}
