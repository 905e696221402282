package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Authority is a certificate authority of one test.
type Authority struct {
	CA   string // path of its certificate
	tb   testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	made int64
}

// Pair is a certificate with its private key, as paths of files in PEM form.
type Pair struct{ Cert, Key string }

// NewAuthority makes an authority that nobody else trusts.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir()}
	a.key = a.newKey()
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.CA = a.write("ca.crt", "CERTIFICATE", a.sign(a.cert, a.key))
	return a
}

// Issue makes a certificate for a host, valid until a time, which may lie behind us.
func (a *Authority) Issue(host string, until time.Time) Pair {
	a.tb.Helper()
	a.made++
	key := a.newKey()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(a.made + 1), Subject: pkix.Name{CommonName: host},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{host}
	}
	text, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return Pair{
		Cert: a.write(fmt.Sprintf("%d.crt", a.made), "CERTIFICATE", a.sign(c, key)),
		Key:  a.write(fmt.Sprintf("%d.key", a.made), "EC PRIVATE KEY", text),
	}
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.tb.Fatal(err)
	}
	return key
}

func (a *Authority) sign(c *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return der
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.tb.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	return path
}

// TLS lets the server listen on a port of this computer with TLS alone, besides its socket, and ask every client for a
// certificate of the same authority.
func TLS(a *Authority, own Pair) Option {
	return func(s *Server) {
		s.port = FreePort(s.tb)
		s.settings = append(s.settings, "--port", "0", "--tls-port", strconv.Itoa(s.port), "--bind", "127.0.0.1",
			"--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--tls-ca-cert-file", a.CA, "--tls-auth-clients", "yes",
			"--tls-replication", "yes", "--tls-cluster", "yes")
	}
}
