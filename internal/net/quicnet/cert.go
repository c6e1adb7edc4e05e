package quicnet

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Trust selects the servers that a client trusts. The zero value trusts the system's certificate
// authorities and, on a loopback address, any certificate.
type Trust struct {
	CAFile   string // a PEM file with the authorities to trust
	CertHash string // the SHA-256 of the server's certificate, in hex
}

// ClientTLS returns the TLS configuration for dialling addr, a host and port.
func ClientTLS(addr string, t Trust) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", addr, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{ALPN}, ServerName: host}
	switch {
	case t.CertHash != "":
		return c, pin(c, t.CertHash)
	case t.CAFile != "":
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("certificate authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate authorities: %s holds no PEM certificate", t.CAFile)
		}
	case loopback(host):
		// An attacker on the loopback address controls this machine already; a development
		// certificate is new at every start.
		c.InsecureSkipVerify = true
	}
	return c, nil
}

// ErrWrongCertificate is the error of a dial to a server without the pinned certificate.
var ErrWrongCertificate = errors.New("the server's certificate is not the expected one")

// pin makes c accept only the certificate with a SHA-256, given in hex, whether or not an authority
// has signed it.
func pin(c *tls.Config, text string) error {
	want, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(want) != sha256.Size {
		return fmt.Errorf("certificate hash %q: want the SHA-256 as %d hex digits", text, 2*sha256.Size)
	}
	pinAny(c, [][]byte{want})
	return nil
}

// PinnedTLS returns the TLS configuration for dialling addr, a host and port, that accepts only the
// certificates with one of these SHA-256 hashes.
func PinnedTLS(addr string, hashes [][]byte) (*tls.Config, error) {
	c, err := ClientTLS(addr, Trust{})
	if err == nil {
		pinAny(c, hashes)
	}
	return c, err
}

func pinAny(c *tls.Config, hashes [][]byte) {
	c.InsecureSkipVerify = true // Verification is the comparison below.
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("server has no certificate")
		}
		got := sha256.Sum256(s.PeerCertificates[0].Raw)
		for _, want := range hashes {
			if subtle.ConstantTimeCompare(got[:], want) == 1 {
				return nil
			}
		}
		return fmt.Errorf("%w: it has the hash %x", ErrWrongCertificate, got)
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// OnLoopback reports whether only this machine can reach a server at an address, host:port. The
// only name for which it is true is localhost, because other names may resolve to another address
// later.
func OnLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && loopback(host)
}

// Exposed returns the first address that other machines can reach, with its key, or empty strings
// if there is none. Its arguments are pairs of key and address; empty addresses are skipped.
func Exposed(keysAndAddrs ...string) (key, addr string) {
	for i := 0; i+1 < len(keysAndAddrs); i += 2 {
		if key, addr = keysAndAddrs[i], keysAndAddrs[i+1]; addr != "" && !OnLoopback(addr) {
			return key, addr
		}
	}
	return "", ""
}
