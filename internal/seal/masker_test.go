package seal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mask sends a stream through a masker in pieces of the given sizes, as a worker does: with the bytes before each piece, and
// going on where it is told to.
func mask(m *Masker, stream string, sizes func() int) string {
	var out []byte
	for at, known := 0, 0; at < len(stream); {
		known = min(max(known, at)+sizes(), len(stream))
		from := max(0, at-m.Context())
		piece := []byte(stream[from:known])
		show := m.Mask(piece, false, known == len(stream))
		out = append(out, piece[at-from:max(show, at-from)]...)
		at = max(at, from+show)
	}
	return string(out)
}

// Ensure that however a stream is cut into pieces, each byte of each secret is hidden, also where secrets touch, overlap or
// begin again, and no other byte is changed.
func TestG12_MaskerHidesSecretsAcrossPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("ab\n"))
		secrets := map[string]string{}
		for _, value := range rapid.SliceOfN(rapid.StringOfN(letters, 1, 9, -1), 1, 3).Draw(t, "secrets") {
			secrets[value] = value
		}
		parts := []*rapid.Generator[string]{rapid.StringOfN(letters, 0, 12, -1)}
		for _, value := range secrets {
			parts = append(parts, rapid.Just(value), rapid.Just(value[:len(value)/2]))
		}
		stream := strings.Join(rapid.SliceOfN(rapid.OneOf(parts...), 0, 12).Draw(t, "stream"), "")
		m := NewMasker(secrets)
		whole := []byte(stream)
		m.Mask(whole, false, true)
		got := mask(m, stream, func() int { return rapid.IntRange(1, 7).Draw(t, "size") })
		if got != string(whole) {
			t.Fatalf("in pieces %q, at once %q", got, whole)
		}
		want := []byte(stream)
		for value := range secrets {
			for _, form := range append(strings.Split(value, "\n"), value) {
				for at := 0; at+len(form) <= len(stream) && len(value) >= minSecret && len(form) >= minSecret; at++ {
					if stream[at:at+len(form)] == form {
						copy(want[at:], strings.Repeat("*", len(form)))
					}
				}
				for n := minSecret; n < min(len(form), len(stream)+1) && len(value) >= minSecret; n++ {
					if strings.HasSuffix(stream, form[:n]) { // it may have been cut off there
						copy(want[len(stream)-n:], strings.Repeat("*", n))
					}
				}
			}
		}
		if got != string(want) {
			t.Fatalf("masked %q, want %q", got, want)
		}
	})
}

// Ensure that a value of more bytes than are ever held back is hidden in full, and that pieces stay small.
func TestG12_MaskerHidesLongSecrets(t *testing.T) {
	t.Parallel()
	var key strings.Builder
	for i := range 20_000 {
		key.WriteByte("0123456789abcdefghijklmnopqrstuvwxyz"[i*i%35])
	}
	m := NewMasker(map[string]string{"KEY": key.String()})
	if m.Context() > maxForm+minSecret {
		t.Errorf("%d bytes of context", m.Context())
	}
	got := mask(m, "before "+key.String()+" after", func() int { return 5000 })
	if want := "before " + strings.Repeat("*", key.Len()) + " after"; got != want {
		t.Errorf("masked to %d bytes with %d stars", len(got), strings.Count(got, "*"))
	}
}

// Ensure that what is left of a secret behind a gap is hidden, unless it is too short to say anything.
func TestG12_MaskerHidesTornSecrets(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"KEY": "correct horse"})
	for text, want := range map[string]string{
		"rect horse, and more": "**********, and more",
		"orse":                 "****",
		"rse and more":         "rse and more",
		"correct horse":        "*************",
		"nothing":              "nothing",
	} {
		data := []byte(text)
		if n := m.Mask(data, true, true); string(data) != want || n != len(data) {
			t.Errorf("%q: masked to %q", text, data)
		}
	}
}

// Ensure that what is there of a secret at the end of all output is hidden, unless it is too short to say anything.
func TestG12_MaskerHidesBegunSecrets(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"KEY": "correct horse"})
	for text, want := range map[string]string{
		"it is correct hor": "it is ***********",
		"it is corr":        "it is ****",
		"it is cor":         "it is cor",
	} {
		data := []byte(text)
		if n := m.Mask(data, false, true); string(data) != want || n != len(data) {
			t.Errorf("%q: masked to %q", text, data)
		}
	}
}

// Ensure the other forms of a value: quoted, in a URL, each of its lines; and that short ones are left alone.
func TestMaskerForms(t *testing.T) {
	t.Parallel()
	m := NewMasker(map[string]string{"PEM": "first line\r\nsecond one\n}\n", "URL": "p&ss wörd", "SHORT": "abc"})
	text := []byte(`"first line\r\nsecond one\n}\n" second one | p%26ss+w%C3%B6rd p&ss wörd abc }`)
	m.Mask(text, false, true)
	if want := `"*****************************" ********** | **************** ********** abc }`; string(text) != want {
		t.Errorf("masked to\n%s, want\n%s", text, want)
	}
	var none *Masker
	if NewMasker(map[string]string{"A": "1"}) != nil || none.Context() != 0 || none.Mask([]byte("x"), true, false) != 1 {
		t.Error("no secrets are not nothing to do")
	}
}

// A worker masks a megabyte in a few milliseconds, also if a secret is a file of thousands of lines.
func BenchmarkMasker(b *testing.B) {
	text := bytes.Repeat([]byte("epoch 12 loss 0.123 lr 1e-4 hunter\n"), 30_000)
	var file strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&file, "%x%050d\n", i*7919, i)
	}
	for name, secrets := range map[string]map[string]string{
		"tokens": {"A": "correct horse battery staple", "B": "hunter2hunter2", "C": "AKIAIOSFODNN7EXAMPLE"},
		"a file": {"A": file.String()},
	} {
		b.Run(name, func(b *testing.B) {
			m := NewMasker(secrets)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Mask(text, false, false)
			}
		})
	}
}
