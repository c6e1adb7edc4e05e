package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// explain adds the remedy to an error of the connection.
func explain(err error) error {
	is := func(any ...error) bool {
		return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
	}
	says := func(text string) bool { return strings.Contains(err.Error(), text) }
	for _, known := range []struct {
		remedy string
		found  bool
	}{
		{"NATS refuses the credentials, because they have expired: make new ones", is(nats.ErrAuthExpired, nats.ErrAccountAuthExpired)},
		{"NATS refuses the credentials, because they were revoked: make new ones", is(nats.ErrAuthRevoked)},
		{"NATS refuses the credentials: check the user and password or the token of the URL, or the file of the key", is(nats.ErrAuthorization)},
		{"the user of NATS lacks a permission: docs/SCALING.md lists all", is(nats.ErrPermissionViolation)},
		{"NATS requires TLS: use a URL with tls://", is(nats.ErrSecureConnRequired)},
		{"NATS offers no TLS: use a URL with nats://, and no CA", is(nats.ErrSecureConnWanted) || isType[tls.RecordHeaderError](err)},
		{"the certificate of NATS is signed by an unknown authority: name the file of its CA", isType[x509.UnknownAuthorityError](err)},
		{"the certificate of NATS is for other names: use one of them in the URL, or another certificate", isType[x509.HostnameError](err)},
		{"the certificate of NATS is not valid", isType[x509.CertificateInvalidError](err)},
		{"NATS requires a certificate of the server: set one in Config.TLS", says("certificate required") || says("bad certificate")},
	} {
		if known.found {
			return fmt.Errorf("%s: %w", known.remedy, err)
		}
	}
	return err
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// withoutPort returns the text of an error without the local port of its connection, which differs
// in each attempt.
func withoutPort(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Sprint(op.Op, " ", op.Addr, ": ", op.Err)
	}
	return err.Error()
}
