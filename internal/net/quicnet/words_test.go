package quicnet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// ClosedBy converts each error to a code of ours, or to a lost connection.
func TestWhyAConnectionEnded(t *testing.T) {
	const socket = "socket is closed"
	wire := &quic.TransportError{ErrorCode: quic.ProtocolViolation, Remote: true}
	for _, c := range []struct {
		err  error
		want transport.Closed
	}{
		{&quic.ApplicationError{ErrorCode: 3, ErrorMessage: "so"}, transport.Closed{Code: 3, Text: "so"}},
		{fmt.Errorf("read: %w", &quic.ApplicationError{ErrorCode: 3, Remote: true}), transport.Closed{Code: 3, Remote: true}},
		{wire, transport.Closed{Code: transport.CodeLost, Text: wire.Error(), Remote: true}},
		{nil, transport.Closed{Code: transport.CodeLost, Text: socket}},
		{net.ErrClosed, transport.Closed{Code: transport.CodeLost, Text: socket}},
		{context.Canceled, transport.Closed{Code: transport.CodeLost, Text: socket}},
		{quic.ErrTransportClosed, transport.Closed{Code: transport.CodeLost, Text: socket}},
		{errors.New("a cable"), transport.Closed{Code: transport.CodeLost, Text: "a cable"}},
	} {
		if got := ClosedBy(c.err); got != c.want {
			t.Errorf("%v reads %+v, want %+v", c.err, got, c.want)
		}
	}
}

// The error of a dial is the server's refusal, a refusal of ours, a timeout, or the original error.
func TestDialErrors(t *testing.T) {
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	given, cancel := context.WithCancel(t.Context())
	cancel()
	now, other := t.Context(), errors.New("a cable")
	refusal, closed := &transport.Refusal{Code: transport.CodeFull, Text: "so"}, &transport.Closed{Code: transport.CodeProtocol}
	invalid := x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign, Cert: new(x509.Certificate)}
	dateless := x509.CertificateInvalidError{Reason: x509.Expired}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
		is   error
	}{
		"a refusal":             {given, refusal, refusal.Error(), refusal},
		"a close":               {given, closed, closed.Error(), closed},
		"the server's close":    {given, &quic.ApplicationError{ErrorCode: 3, ErrorMessage: "so", Remote: true}, (&transport.Refusal{Code: 3, Text: "so"}).Error(), nil},
		"a close of its own":    {now, &quic.ApplicationError{ErrorCode: 3, ErrorMessage: "so"}, "Application error 0x3 (local): so", nil},
		"no place":              {over, &quic.TransportError{ErrorCode: quic.ConnectionRefused, Remote: true}, "server accepts no clients now", nil},
		"another wire error":    {now, &quic.TransportError{ErrorCode: quic.ProtocolViolation, Remote: true}, "PROTOCOL_VIOLATION", nil},
		"refused here":          {now, &quic.TransportError{ErrorCode: quic.ConnectionRefused}, "CONNECTION_REFUSED", nil},
		"another certificate":   {now, invalid, invalid.Error(), nil},
		"one without dates":     {now, dateless, dateless.Error(), nil},
		"no time":               {over, other, "no answer in time", context.DeadlineExceeded},
		"no patience":           {given, other, "context canceled", context.Canceled},
		"silence":               {now, &quic.IdleTimeoutError{}, "no answer", nil},
		"a silent handshake":    {now, &quic.HandshakeTimeoutError{}, "no answer", nil},
		"a cable":               {now, other, "a cable", other},
		"no patience, silently": {given, &quic.IdleTimeoutError{}, "context canceled", context.Canceled},
	} {
		got := dialError(c.ctx, c.err)
		if !strings.Contains(got.Error(), c.want) || c.is != nil && !errors.Is(got, c.is) {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// SendError distinguishes a too large datagram from an ended connection, and streamError recognises
// an aborted stream.
func TestErrorsOfStreamsAndDatagrams(t *testing.T) {
	other := errors.New("a cable")
	for in, want := range map[error]error{nil: nil, &quic.DatagramTooLargeError{}: transport.ErrDatagramTooLarge, other: other} {
		if got := SendError(in); !errors.Is(got, want) || (got == nil) != (in == nil) {
			t.Errorf("%v is %v, want %v", in, got, want)
		}
	}
	for in, want := range map[error]string{nil: "<nil>", &quic.StreamError{}: "unexpected EOF", other: "a cable"} {
		if got := fmt.Sprint(streamError(in)); got != want {
			t.Errorf("%v is %s, want %s", in, got, want)
		}
	}
}

// A client trusts authorities of the system or of a file, one certificate alone, or on this machine
// any.
func TestCertificatesThatAClientAccepts(t *testing.T) {
	cert, _ := certified(t, -time.Hour, time.Hour)
	dir := t.TempDir()
	good, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	for file, text := range map[string][]byte{good: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), empty: nil} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := strings.Repeat("0f:", 31) + "0f"
	for name, c := range map[string]struct {
		addr           string
		trust          Trust
		anybody, roots bool
		wrong          string
	}{
		"the system":       {"game.example:1", Trust{}, false, false, ""},
		"localhost":        {"localhost:1", Trust{}, true, false, ""},
		"loopback":         {"127.0.0.2:1", Trust{}, true, false, ""},
		"loopback, IPv6":   {"[::1]:1", Trust{}, true, false, ""},
		"another address":  {"192.0.2.1:1", Trust{}, false, false, ""},
		"a file":           {"127.0.0.1:1", Trust{CAFile: good}, false, true, ""},
		"no file":          {"127.0.0.1:1", Trust{CAFile: filepath.Join(dir, "none")}, false, false, "certificate authorities: open"},
		"a file of none":   {"127.0.0.1:1", Trust{CAFile: empty}, false, false, "holds no PEM certificate"},
		"a hash":           {"game.example:1", Trust{CertHash: hash, CAFile: empty}, true, false, ""},
		"half a hash":      {"game.example:1", Trust{CertHash: hash[:40]}, false, false, "64 hex digits"},
		"no hash":          {"game.example:1", Trust{CertHash: strings.Repeat("x", 64)}, false, false, "64 hex digits"},
		"an address alone": {"game.example", Trust{}, false, false, `address "game.example"`},
	} {
		conf, err := ClientTLS(c.addr, c.trust)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %q", name, err, c.wrong)
			}
			continue
		}
		host, _, _ := net.SplitHostPort(c.addr)
		if err != nil || conf.InsecureSkipVerify != c.anybody || (conf.RootCAs != nil) != c.roots || conf.ServerName != host || conf.MinVersion != tls.VersionTLS13 {
			t.Errorf("%s: %v, anybody %v, roots %v, server %q", name, err, conf.InsecureSkipVerify, conf.RootCAs != nil, conf.ServerName)
		}
		if (conf.VerifyConnection != nil) != (c.trust.CertHash != "") || conf.VerifyConnection != nil && conf.VerifyConnection(tls.ConnectionState{}) == nil {
			t.Errorf("%s: a server without a certificate is believed", name)
		}
	}
	for addr, want := range map[string]bool{"localhost:1": true, "127.0.0.1:1": true, "[::1]:80": true, "192.0.2.1:1": false, "game.example:1": false, "127.0.0.1": false} {
		if OnLoopback(addr) != want {
			t.Errorf("%s is on this machine: %v", addr, !want)
		}
	}
}

// A dial with an invalid configuration returns an error, and leaves no socket open.
func TestDialsThatCannotBegin(t *testing.T) {
	bad := nettest.Hello()
	bad.Room = "\xff"
	d, err := NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	hello := transport.Greeting{Hello: nettest.Hello()}
	for want, cfg := range map[string]DialConfig{
		`address "nowhere"`:            {Addr: "nowhere", Greeting: hello},
		`address "else"`:               {Addr: "else", Greeting: hello, TLS: new(tls.Config)},
		"lookup":                       {Addr: "127.0.0.1:nowhere", Greeting: hello},
		"hello":                        {Addr: "127.0.0.1:1", Greeting: transport.Greeting{Hello: bad}},
		driver.ErrDialerClosed.Error(): {Addr: "127.0.0.1:1", Greeting: hello, Dialer: d},
	} {
		cfg.Session.Inbox = transport.NewInbox(0, nil)
		if _, _, err := Dial(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
	conf := &tls.Config{ServerName: "game.example"}
	if got, err := named(conf, "no port"); err != nil || got.ServerName != "game.example" {
		t.Errorf("a name that is given becomes %q, %v", got.ServerName, err)
	}
}

// A listener that cannot start names its address, and its settings are kept.
func TestListenErrorsAndSettings(t *testing.T) {
	for _, at := range []string{"127.0.0.1:nowhere", "192.0.2.1:0", "x"} {
		if l, err := Listen(ServerConfig{Listen: at}); err == nil || !strings.Contains(err.Error(), `"`+at+`"`) {
			t.Errorf("%s: %v, %v", at, l, err)
		}
	}
	c := ServerConfig{IdleTimeout: 1, Secret: []byte{7}}.withDefaults()
	if c.IdleTimeout != 1 || len(c.Secret) != 1 || c.Secret[0] != 7 {
		t.Errorf("what is given becomes %+v", c)
	}
	c, other := ServerConfig{}.withDefaults(), ServerConfig{}.withDefaults()
	if c.IdleTimeout != 10*time.Second || len(c.Secret) != 32 || string(c.Secret) == string(other.Secret) {
		t.Errorf("the defaults are %+v", c)
	}
}

// QUIC's configuration bounds the memory of a connection, and datagrams fit every path: the search
// for a larger packet is off.
func TestHowQUICIsTold(t *testing.T) {
	server, client := serverQUIC(time.Minute), clientQUIC()
	if server.MaxIdleTimeout != time.Minute || client.MaxIdleTimeout != 10*time.Second {
		t.Errorf("the idle timeouts are %v and %v", server.MaxIdleTimeout, client.MaxIdleTimeout)
	}
	if server.MaxIncomingStreams != 4 || server.MaxIncomingUniStreams != 6 || client.MaxIncomingStreams != -1 || client.MaxIncomingUniStreams != 6 {
		t.Errorf("the streams are %+v and %+v", server, client)
	}
	for c, window := range map[*quic.Config]uint64{server: 32 << 10, client: 256 << 10} {
		if c.InitialStreamReceiveWindow != window || c.MaxStreamReceiveWindow != window ||
			c.InitialConnectionReceiveWindow != window*3/2 || c.MaxConnectionReceiveWindow != window*3/2 {
			t.Errorf("the windows are %+v", c)
		}
		if !c.EnableDatagrams || !c.DisablePathMTUDiscovery || c.InitialPacketSize != 1200 || c.HandshakeIdleTimeout != 3*time.Second || c.KeepAlivePeriod != 3*time.Second {
			t.Errorf("it is told %+v", c)
		}
	}
}
