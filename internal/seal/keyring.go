package seal

import (
	"errors"
	"slices"
	"sync"
)

// Keyring is the identity of a running worker. It reads its source again when it meets something that was sealed for a
// key it does not have, so that a rotation needs no restart. It may be used by several goroutines.
type Keyring struct {
	load func() (*Identity, error)

	mu  sync.Mutex
	now *Identity
}

// NewKeyring makes a keyring of what load returns, now and whenever it is read again.
func NewKeyring(load func() (*Identity, error)) (*Keyring, error) {
	now, err := load()
	if err != nil {
		return nil, err
	}
	return &Keyring{load: load, now: now}, nil
}

// Identity is the identity as it was read last.
func (k *Keyring) Identity() *Identity {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// Reload reads the source again, and reports whether the keys have changed. After an error the keys from before stay.
func (k *Keyring) Reload() (bool, error) {
	next, err := k.load()
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	changed := !slices.Equal(k.now.Recipients(), next.Recipients())
	k.now = next
	return changed, nil
}

// Open decrypts what Seal made, like [Identity.Open].
func (k *Keyring) Open(sealed []byte) (map[string]string, error) {
	secrets, err := k.Identity().Open(sealed)
	if !errors.Is(err, ErrNotOurs) {
		return secrets, err
	}
	if _, loadErr := k.Reload(); loadErr != nil {
		return nil, err // which says what the matter is; the file may be on its way
	}
	return k.Identity().Open(sealed)
}
