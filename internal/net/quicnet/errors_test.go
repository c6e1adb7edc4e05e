package quicnet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// certified returns a certificate for localhost, valid from and until these times from now, and a
// pool that trusts it.
func certified(t *testing.T, from, until time.Duration) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: now.Add(from), NotAfter: now.Add(until),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// The error of a certificate that is not valid now contains its dates; a valid one is accepted.
func TestCertificateDatesAreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		from, until time.Duration
		wrong       bool
	}{
		"expired":       {-48 * time.Hour, -24 * time.Hour, true},
		"not yet valid": {24 * time.Hour, 48 * time.Hour, true},
		"valid":         {-time.Hour, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, pool := certified(t, c.from, c.until)
			h := serve(t, func(s *ServerConfig) { s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}} })
			ctx, cancel := context.WithTimeout(context.Background(), nettest.Patience)
			defer cancel()
			g := nettest.NewOwner(nil)
			s, _, err := Dial(ctx, DialConfig{
				Addr: h.listener.Addr().String(), TLS: &tls.Config{RootCAs: pool, ServerName: "localhost"},
				Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals},
			})
			if err == nil {
				s.Close(transport.CodeLeft, "")
				g.Find(t, "the end", nettest.Kind(transport.Gone))
			}
			var dates *CertificateDates
			if errors.As(err, &dates) != c.wrong || !c.wrong && err != nil {
				t.Fatal("the dial says", err)
			}
			if c.wrong && (!strings.Contains(err.Error(), dates.Until.UTC().Format(time.DateTime)) || !strings.Contains(err.Error(), dates.From.UTC().Format(time.DateTime))) {
				t.Error("the dates are not in", err)
			}
		})
	}
}

// A client that was stopped for a long time is not told that the server has restarted: the server
// may have dropped the connection.
func TestALostConnectionIsSaidAsFarAsItIsKnown(t *testing.T) {
	c := ClosedBy(&quic.StatelessResetError{})
	if c.Code != transport.CodeLost || c.Remote || c.Text != "peer does not know this connection: it restarted, or received no packet for 10s" {
		t.Errorf("a reset reads %+v", c)
	}
	if c = ClosedBy(&quic.IdleTimeoutError{}); c.Code != transport.CodeLost || c.Text != "no packet from the peer for 10s" {
		t.Errorf("silence reads %+v", c)
	}
}

// QUIC's codes are wider than the transport's: a code that does not fit becomes CodeUnspecified,
// not its low bits.
func TestACodeThatDoesNotFitMeansNothing(t *testing.T) {
	for code, want := range map[quic.ApplicationErrorCode]transport.Code{
		quic.ApplicationErrorCode(transport.CodeKicked): transport.CodeKicked,
		1<<32 - 1: 1<<32 - 1,
		1<<32 + quic.ApplicationErrorCode(transport.CodeKicked): transport.CodeUnspecified,
	} {
		if c := ClosedBy(&quic.ApplicationError{ErrorCode: code, Remote: true}); c.Code != want || !c.Remote {
			t.Errorf("code %#x reads %+v", code, c)
		}
	}
}
