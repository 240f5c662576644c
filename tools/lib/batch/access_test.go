package batch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// certificate writes a certificate of this machine that is signed by itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", private)
}

// A server with TLS lets in who has a certificate and the password, and nobody is told the password.
func TestAccess(t *testing.T) {
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), Username: "me", Password: "geheim",
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}, TLSTimeout: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not start")
	}
	host := s.Addr().String()
	for _, c := range []struct {
		name string
		a    Access
		in   bool
	}{
		{"all", Access{URLs: "tls://me:geheim@" + host, CA: cert, Cert: cert, Key: key}, true},
		{"unknown server", Access{URLs: "tls://me:geheim@" + host, Cert: cert, Key: key}, false},
		{"no certificate", Access{URLs: "tls://me:geheim@" + host, CA: cert}, false},
		{"another password", Access{URLs: "tls://me:geheimer@" + host, CA: cert, Cert: cert, Key: key}, false},
		{"no such file", Access{URLs: "tls://me:geheim@" + host, CA: cert, Cert: cert, Key: key + "x"}, false},
		{"no such token", Access{URLs: "tls://me:geheim@" + host, Token: key + "x"}, false},
		{"no such seed", Access{URLs: "tls://me:geheim@" + host, NKey: key + "x"}, false},
		{"no such credentials", Access{URLs: "tls://me:geheim@" + host, CA: cert, Cert: cert, Key: key, Creds: key + "x"}, false},
	} {
		q, err := Dial(c.a, "1", Coordinator, nil)
		if c.in != (err == nil) || err != nil && strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			q.Close()
		}
	}
}
