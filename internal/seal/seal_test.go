package seal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func generate(t *testing.T) *Identity {
	t.Helper()
	i, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Whatever is sealed is opened unchanged, also bytes that are no text, and is not in the blob.
func TestWhatIsSealedIsOpenedUnchanged(t *testing.T) {
	t.Parallel()
	id := generate(t)
	anyBytes := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.MapOfN(anyBytes, anyBytes, 0, 5).Draw(t, "secrets")
		sealed, err := Seal(id.Recipient(), want)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range want {
			if len(value) >= 8 && bytes.Contains(sealed, []byte(value)) {
				t.Errorf("%q is in the blob", value)
			}
		}
		got, err := id.Open(sealed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOnlyTheRightIdentityOpens(t *testing.T) {
	t.Parallel()
	sealed, err := Seal(generate(t).Recipient(), map[string]string{"TOKEN": "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := generate(t).Open(sealed); !errors.Is(err, ErrNotOurs) {
		t.Errorf("got %v, want ErrNotOurs", err)
	}
}

func TestADamagedBlobIsAnErrorWithoutItsContent(t *testing.T) {
	t.Parallel()
	id := generate(t)
	sealed, err := Seal(id.Recipient(), map[string]string{"TOKEN": "hunter2hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	for name, blob := range map[string][]byte{
		"cut off":  sealed[:len(sealed)-1],
		"changed":  append(bytes.Clone(sealed[:len(sealed)-1]), sealed[len(sealed)-1]^1),
		"not ours": []byte("hunter2hunter2"),
	} {
		_, err := id.Open(blob)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSealRefusesWhatNobodyCouldUse(t *testing.T) {
	t.Parallel()
	if _, err := Seal("age1nonsense", map[string]string{"A": "b"}); err == nil {
		t.Error("a recipient that is none was accepted")
	}
	huge := map[string]string{"A": strings.Repeat("x", maxSealed)}
	if _, err := Seal(generate(t).Recipient(), huge); err == nil {
		t.Error("secrets that Open would refuse were accepted")
	}
}
