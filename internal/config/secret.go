package config

import (
	"fmt"
	"strings"
)

// redacted stands where a secret is.
const redacted = "[redacted]"

// Secret is a text that is not shown when it is printed or marshalled. Convert it to a string where it is used.
type Secret string

// String says only whether there is one.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString is String, for the verb %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalText is String, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// RedisURL is where Redis is. Its password is not shown when it is printed or marshalled.
//
//	redis://[user:password@]host[:port][/db]      rediss:// with TLS
//	unix://[user:password@]/path/to/socket[?db=n]
//	redis+cluster://[user:password@]host,host     rediss+cluster:// with TLS
//	redis+sentinel://[user:password@]host,host/name-of-the-master[?db=n]
type RedisURL string

// String is the URL with its password replaced. It works on any text, since a URL with a mistake in it holds a password
// just as well.
func (u RedisURL) String() string {
	scheme, rest, ok := strings.Cut(string(u), "://")
	if !ok {
		if strings.Contains(string(u), "@") {
			return redacted
		}
		return string(u)
	}
	at := strings.LastIndex(rest, "@")
	if at < 0 {
		return string(u)
	}
	user, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		user = redacted // may be a password in the wrong place
	} else {
		user += ":" + redacted
	}
	return scheme + "://" + user + rest[at:]
}

// Place is where a single server is, without user and password: "host:port", with "/db" behind it unless that is 0.
func (u RedisURL) Place() string {
	o, err := u.options()
	if err != nil {
		return u.String()
	}
	if o.DB != 0 {
		return fmt.Sprintf("%s/%d", o.Addrs[0], o.DB)
	}
	return o.Addrs[0]
}

// GoString is String, for the verb %#v.
func (u RedisURL) GoString() string { return u.String() }

// MarshalText is String, for JSON and YAML.
func (u RedisURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// maskURL takes out of the URL of a bucket what may hold a secret: user, password and parameters.
func maskURL(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = redacted + text[at:]
	}
	if before, _, ok := strings.Cut(text, "?"); ok {
		text = before + "?" + redacted
	}
	return text
}
