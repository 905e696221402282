package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins secrets in the form of Standard Webhooks, which are base64 after it. Any other secret is its bytes.
const secretPrefix = "whsec_"

// sign is the signature of a message as https://www.standardwebhooks.com has it: version and HMAC-SHA256 of id, time and
// body.
func sign(secret, id string, at time.Time, body []byte) (string, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return "", fmt.Errorf("the secret to sign with begins with %s and is not base64 after it", secretPrefix)
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)), nil
}
