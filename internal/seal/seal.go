package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
)

// maxSealed bounds what Open reads: an environment that large could not be passed to a process.
const maxSealed = 4 << 20

// ErrNotOurs says that a blob was sealed for another identity.
var ErrNotOurs = errors.New("sealed for another identity")

// Seal encrypts secrets so that only the holder of the identity behind recipient ("age1...") can read them. No
// secrets make a nil blob. Values may hold any bytes. Errors never hold a name or a value.
func Seal(recipient string, secrets map[string]string) ([]byte, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	to, err := age.ParseX25519Recipient(recipient)
	if err != nil {
		return nil, fmt.Errorf("seal secrets: recipient: %w", err)
	}
	plain, err := encode(secrets)
	if err != nil {
		return nil, fmt.Errorf("seal secrets: %w", err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	if err != nil {
		return nil, fmt.Errorf("seal secrets: %w", err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("seal secrets: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal secrets: %w", err)
	}
	return sealed.Bytes(), nil
}

// Open decrypts what Seal made. A nil blob holds no secrets. Errors wrap [ErrNotOurs] if the blob was sealed for another
// identity.
func (i *Identity) Open(sealed []byte) (map[string]string, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), i.ageIdentities()...)
	if err != nil {
		var none *age.NoIdentityMatchError
		if errors.As(err, &none) {
			return nil, fmt.Errorf("open sealed secrets: %w", ErrNotOurs)
		}
		return nil, errors.New("open sealed secrets: damaged, or never sealed") // age quotes what it could not read
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxSealed+1))
	if err != nil {
		return nil, fmt.Errorf("open sealed secrets: %w", err)
	}
	if len(plain) > maxSealed {
		return nil, fmt.Errorf("open sealed secrets: more than %d bytes", maxSealed)
	}
	secrets, err := decode(plain)
	if err != nil {
		return nil, fmt.Errorf("open sealed secrets: %w", err)
	}
	return secrets, nil
}

// pair is one secret. Both are bytes because JSON strings would change whatever is not UTF-8.
type pair struct {
	Name  []byte `json:"n"`
	Value []byte `json:"v"`
}

func encode(secrets map[string]string) ([]byte, error) {
	pairs := make([]pair, 0, len(secrets))
	size := 0
	for name, value := range secrets {
		size += len(name) + len(value)
		pairs = append(pairs, pair{[]byte(name), []byte(value)})
	}
	plain, err := json.Marshal(pairs)
	if err != nil {
		return nil, err
	}
	if len(plain) > maxSealed {
		return nil, fmt.Errorf("%d bytes of secrets are too many", size)
	}
	return plain, nil
}

// decode leaves out the decoder's error, which quotes its input.
func decode(plain []byte) (map[string]string, error) {
	var pairs []pair
	if err := json.Unmarshal(plain, &pairs); err != nil {
		return nil, errors.New("the content is not a list of secrets")
	}
	secrets := make(map[string]string, len(pairs))
	for _, p := range pairs {
		secrets[string(p.Name)] = string(p.Value)
	}
	return secrets, nil
}
