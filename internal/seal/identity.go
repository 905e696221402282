package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"filippo.io/age"
)

// Identity opens what was sealed for its recipient. It never shows its keys: printing it prints the recipient.
type Identity struct {
	keys []*age.X25519Identity // at least one; the first is the one to seal for
}

// Generate makes a new identity. It is lost unless it is saved; see [LoadOrCreate].
func Generate() (*Identity, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("generate an identity: %w", err)
	}
	return &Identity{keys: []*age.X25519Identity{key}}, nil
}

// Load reads an identity file, in the format of age-keygen. Errors wrap fs.ErrNotExist if there is none. A file that
// others may read, or that its group may change, is refused. (Its group may read it: Kubernetes mounts secrets so.)
func Load(path string) (*Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load the identity: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("load the identity: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return nil, fmt.Errorf("load the identity: %s has the mode %04o, so others could read or change it: "+
			"chmod 600 it, and replace the key if it was exposed", path, mode)
	}
	i, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("load the identity: %s %w", path, err)
	}
	return i, nil
}

// Parse reads the keys of an identity from a text, such as a variable of the environment: like a file, or with spaces or
// commas between the keys. Errors never quote it.
func Parse(text string) (*Identity, error) {
	if !strings.Contains(text, "#") { // a comment has spaces of its own
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }), "\n")
	}
	i, err := parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the identity: the text %w", err)
	}
	return i, nil
}

// parse reads keys. Its errors continue a sentence that says where they were read from.
func parse(r io.Reader) (*Identity, error) {
	found, err := age.ParseIdentities(r)
	if err != nil {
		// The parser's error may quote a line.
		return nil, errors.New("holds no age keys, or a damaged one: each must be a line AGE-SECRET-KEY-1..., as written by worker identity new")
	}
	i := &Identity{}
	for _, id := range found {
		key, ok := id.(*age.X25519Identity)
		if !ok {
			return nil, errors.New("holds a key that is not X25519")
		}
		i.keys = append(i.keys, key)
	}
	return i, nil
}

// LoadOrCreate loads the identity file at path, or makes it with mode 0600. If several processes do so at once, one of them
// makes it and all return the same identity; none ever sees half a file.
func LoadOrCreate(path string) (*Identity, error) {
	i, err := Load(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	if i, err = Generate(); err != nil {
		return nil, err
	}
	switch err := i.create(path); {
	case errors.Is(err, fs.ErrExist):
		return Load(path) // another process was faster
	case err != nil:
		return nil, fmt.Errorf("save the identity: %w", err)
	}
	return i, nil
}

// create writes the file under another name and links it to its place, which, unlike a rename, never replaces a file.
func (i *Identity) create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".identity-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(i.Text())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), path)
}

// Text is the identity as a file holds it. It is secret.
func (i *Identity) Text() []byte {
	var b bytes.Buffer
	b.WriteString("# The secrets of all jobs are sealed for this key. Every worker needs it; keep it secret, keep a copy.\n")
	for _, key := range i.keys {
		fmt.Fprintf(&b, "# public key: %s\n%s\n", key.Recipient(), key)
	}
	return b.Bytes()
}

// Recipient is the public half, to seal for: "age1...".
func (i *Identity) Recipient() string { return i.keys[0].Recipient().String() }

// Recipients are the public halves of all keys, the one to seal for first.
func (i *Identity) Recipients() []string {
	all := make([]string, len(i.keys))
	for n, key := range i.keys {
		all[n] = key.Recipient().String()
	}
	return all
}

// Opens reports whether one of the keys is that of a recipient.
func (i *Identity) Opens(recipient string) bool { return slices.Contains(i.Recipients(), recipient) }

// String returns the recipient, so that an identity that is printed by mistake shows nothing secret.
func (i *Identity) String() string { return i.Recipient() }

// GoString is String, for the verb %#v.
func (i *Identity) GoString() string { return "seal.Identity(" + i.Recipient() + ")" }

func (i *Identity) ageIdentities() []age.Identity {
	ids := make([]age.Identity, len(i.keys))
	for n, key := range i.keys {
		ids[n] = key
	}
	return ids
}
