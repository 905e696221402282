package config

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// RedisTLS are the certificates for rediss://. All are files in PEM form.
type RedisTLS struct {
	CA         string // authorities that the server's certificate may come from; "" means those of this computer
	Cert       string // the client's own certificate, for a server that asks for one
	Key        string // its private key
	ServerName string // that the server's certificate must be for; "" means the host in the URL
}

// apply puts the certificates into settings; nil are those of a connection without TLS. Errors name the setting that is
// wrong.
func (t RedisTLS) apply(to *tls.Config) error {
	if to == nil {
		if t != (RedisTLS{}) {
			return errors.New("redis_tls is set, and the URL does not ask for TLS: write rediss:// instead of redis://")
		}
		return nil
	}
	if t.ServerName != "" {
		to.ServerName = t.ServerName
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return fmt.Errorf("redis_tls.ca: %w", err)
		}
		to.RootCAs = x509.NewCertPool()
		if !to.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("redis_tls.ca: %s holds no certificate: it must be in PEM form", t.CA)
		}
	}
	return t.present(to)
}

// present lets the client show its certificate. The files are read again for each connection: certificates are renewed while
// programs run.
func (t RedisTLS) present(to *tls.Config) error {
	switch {
	case t.Cert == "" && t.Key == "":
		return nil
	case t.Cert == "" || t.Key == "":
		return errors.New("redis_tls.cert and redis_tls.key belong together: set both or none")
	}
	read := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("redis_tls.cert, redis_tls.key: %w", err)
		}
		return &pair, nil
	}
	if _, err := read(); err != nil {
		return err
	}
	to.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return read() }
	return nil
}

// dialer connects with TLS. Other than that of go-redis it tells a server that does not speak TLS, and so never answers, from
// one that is not there.
func dialer(config *tls.Config, limit time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, done := context.WithTimeout(ctx, limit)
		defer done()
		raw, err := (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		own := config.Clone()
		if host, _, err := net.SplitHostPort(address); own.ServerName == "" && err == nil {
			own.ServerName = host
		}
		secure := tls.Client(raw, own)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		return secure, nil
	}
}

// keepAlive finds out that the other side has gone without a word.
const keepAlive = 15 * time.Second
