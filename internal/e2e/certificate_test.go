package e2e_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/certificate"
)

// renew writes the key and then a new certificate, and returns the certificate's hash.
func renew(t *testing.T, certFile, keyFile string) [sha256.Size]byte {
	t.Helper()
	if err := certificate.WriteSelfSigned(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(pair.Certificate[0])
}

// connectAndHash connects a client, and returns the hash of the server's certificate.
func connectAndHash(t *testing.T, addr string) (c *client.Client, hash [sha256.Size]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr, client.Config{Schema: schema, TLS: &tls.Config{
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			hash = sha256.Sum256(s.PeerCertificates[0].Raw)
			return nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, hash
}

// After a renewal on disk new connections get the new certificate; existing connections continue.
func TestARenewedCertificateDropsNoClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := renew(t, certFile, keyFile)
	registry := prometheus.NewRegistry()
	s, _ := serveAs(t, script(func(*netloop.Room) {}), netloop.Config{CertFile: certFile, KeyFile: keyFile, Registerer: registry})
	old, shown := connectAndHash(t, s.Addr().String())
	if shown != first || s.CertHash() != first {
		t.Fatal("the first client gets another certificate")
	}
	second := renew(t, certFile, keyFile)
	waitFor(t, func() bool { return s.CertHash() == second })
	renewed, shown := connectAndHash(t, s.Addr().String())
	if shown != second {
		t.Error("a new client gets the old certificate")
	}
	for _, c := range []*client.Client{old, renewed} {
		before := c.Stats().Snapshots
		waitFor(t, func() bool { c.Step(time.Millisecond); return c.Stats().Snapshots > before+10 || c.Closed() != nil })
		if why := c.Closed(); why != nil {
			t.Errorf("a client was dropped: %v", why)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if strings.Contains(f.GetName(), "certificate") {
				values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	if left := values["files"]; left < 1.1e6 || left >= 1.2e6 || values["loaded"] != 1 || values["failed"] != 0 || len(values) != 3 {
		t.Errorf("the metrics say %v", values)
	}
}

// The server uses the certificates of Config.TLS: GetCertificate at each handshake, or
// Certificates.
func TestCertificatesOfTLSConfigAreUsed(t *testing.T) {
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	for name, conf := range map[string]*tls.Config{
		"chosen": {GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }},
		"given":  {Certificates: []tls.Certificate{pair}},
	} {
		s, _ := serveAs(t, script(func(*netloop.Room) {}), netloop.Config{TLS: conf})
		if _, shown := connectAndHash(t, s.Addr().String()); shown != sha256.Sum256(pair.Certificate[0]) {
			t.Errorf("%s: clients get another certificate", name)
		}
		if known := s.CertHash() == sha256.Sum256(pair.Certificate[0]); known != (name == "given") {
			t.Errorf("%s: CertHash is %x", name, s.CertHash())
		}
	}
}
