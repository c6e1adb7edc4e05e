package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"
)

const (
	// developmentLife is the validity of a development certificate: browsers accept a certificate
	// by its hash only if it is valid for at most 14 days.
	developmentLife = 13 * 24 * time.Hour
	// renewBefore is the remaining validity at which a development certificate is replaced: much
	// longer than the differences between clocks.
	renewBefore = 2 * 24 * time.Hour
	// renewCheck is the interval at which a Keeper compares the wall clock with the dates of its
	// certificate, because a machine may sleep for days while timers are stopped.
	renewCheck = time.Hour
)

// Development returns a Keeper of a self-signed certificate for this machine.
func Development(log *slog.Logger) (*Keeper, error) {
	pair, err := SelfSigned()
	if err != nil {
		return nil, err
	}
	k := newKeeper("development", log)
	k.keep(pair)
	k.running.Go(k.renewals)
	return k, nil
}

// renewals renews the certificate before it ends.
func (k *Keeper) renewals() {
	check := time.NewTicker(renewCheck)
	defer check.Stop()
	for {
		select {
		case <-check.C:
		case <-k.done:
			return
		}
		if time.Until(k.Until()) > renewBefore {
			continue
		}
		pair, err := SelfSigned()
		if err != nil {
			k.refuse(err)
			continue
		}
		k.keep(pair)
		k.loaded.Add(1)
		k.log.Warn("the development certificate was renewed: clients that pin its hash need the new one", "cert_hash", k.hexHash())
	}
}

// SelfSigned returns a certificate for this machine, which clients on other machines may pin by its
// hash.
func SelfSigned() (pair tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, fmt.Errorf("development certificate: %w", err)
	}
	from := time.Now().Add(-time.Hour) // Other clocks may be behind.
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "netloop development"},
		NotBefore:   from,
		NotAfter:    from.Add(developmentLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return pair, fmt.Errorf("development certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// WriteSelfSigned writes a certificate for this machine and its key, for tests.
func WriteSelfSigned(certFile, keyFile string) error {
	pair, err := SelfSigned()
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	const own = 0o600
	return errors.Join(
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), own),
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), own),
	)
}
