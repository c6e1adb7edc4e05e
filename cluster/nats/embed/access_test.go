//go:build unix

package embed_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/cluster/clustertest"
	"github.com/netloop/netloop/cluster/nats"
)

// permissions returns the permissions of a game server for a cluster, as docs/SCALING.md and
// deploy/kubernetes/nats-values.yaml list them.
func permissions(name string) (publish, subscribe []string) {
	return []string{
		"netloop." + name + ".>",
		"$JS.API.STREAM.CREATE.NETLOOP_" + name, "$JS.API.STREAM.INFO.NETLOOP_" + name,
		"$JS.API.STREAM.MSG.GET.NETLOOP_" + name, "$JS.API.STREAM.MSG.DELETE.NETLOOP_" + name,
	}, []string{"netloop." + name + ".>", "_INBOX.>"}
}

// The documents and the values of NATS' chart list the permissions that the tests use.
func TestPermissionsAreDocumented(t *testing.T) {
	for path, name := range map[string]string{"../../../docs/SCALING.md": "NAME", "../../../deploy/kubernetes/nats-values.yaml": "netloop"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		publish, subscribe := permissions(name)
		for _, subject := range append(publish, subscribe...) {
			if !strings.Contains(string(text), subject) {
				t.Errorf("%s does not list %s", path, subject)
			}
		}
		if n := strings.Count(string(text), "$JS.API."); n != 4 {
			t.Errorf("%s lists %d subjects of JetStream", path, n)
		}
	}
}

// user returns a user of NATS with permissions.
func user(publish, subscribe []string) *server.User {
	return &server.User{Username: "netloop", Password: "secret", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
	}}
}

// startWith starts a NATS server with other options, and returns its address.
func startWith(t *testing.T, change func(*server.Options)) string {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not start")
	}
	return s.Addr().String()
}

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// certificate returns a certificate of the authority for an address, or a name.
func (a *authority) certificate(t *testing.T, host string, end time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host}, NotBefore: end.Add(-2 * time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// good returns a certificate that is valid for this machine.
func (a *authority) good(t *testing.T) tls.Certificate {
	return a.certificate(t, "127.0.0.1", time.Now().Add(time.Hour))
}

func serverTLS(c tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
}

// The whole contract is fulfilled over TLS by a user with the listed permissions alone.
func TestNATSFulfilsTheContractWithPermissions(t *testing.T) {
	const name = "limited"
	a := newAuthority(t)
	clustertest.Run(t, func(t *testing.T, test func(*testing.T, clustertest.Bed)) {
		t.Parallel()
		addr := startWith(t, func(o *server.Options) {
			o.TLSConfig = serverTLS(a.good(t))
			o.Users = []*server.User{user(permissions(name))}
		})
		b := newBed(t, "tls://"+addr)
		b.config = nats.Config{Name: name, TLS: &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}}
		b.login, b.name = "netloop:secret@", name
		test(t, b)
	})
}

// file writes a file of this test.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// operated returns options of a server with users by JWT, and the file of a user.
func operated(t *testing.T, publish, subscribe []string, expires time.Time) (change func(*server.Options), creds string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pair := func(p nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
		t.Helper()
		must(err)
		public, err := p.PublicKey()
		must(err)
		return p, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator())
	_, systemKey := pair(nkeys.CreateAccount())
	account, accountKey := pair(nkeys.CreateAccount())
	player, playerKey := pair(nkeys.CreateUser())
	encode := func(text string, err error) string { t.Helper(); must(err); return text }

	o := jwt.NewOperatorClaims(operatorKey)
	o.SystemAccount = systemKey
	root, err := jwt.DecodeOperatorClaims(encode(o.Encode(operator)))
	must(err)
	claims := jwt.NewAccountClaims(accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	u := jwt.NewUserClaims(playerKey)
	u.Permissions = jwt.Permissions{Pub: jwt.Permission{Allow: publish}, Sub: jwt.Permission{Allow: subscribe}}
	if !expires.IsZero() {
		u.Expires = expires.Unix()
	}
	token := encode(u.Encode(account))
	seed, err := player.Seed()
	must(err)
	text, err := jwt.FormatUserConfig(token, seed)
	must(err)
	resolver := new(server.MemAccResolver)
	must(resolver.Store(accountKey, encode(claims.Encode(operator))))
	must(resolver.Store(systemKey, encode(jwt.NewAccountClaims(systemKey).Encode(operator))))
	return func(o *server.Options) {
		o.TrustedOperators, o.AccountResolver, o.SystemAccount = []*jwt.OperatorClaims{root}, resolver, systemKey
	}, file(t, text)
}

// access is a way to authenticate: of the server, and of a member at an address.
type access struct {
	server func(*server.Options)
	member func(addr string) nats.Config
}

// byURL returns a configuration with a URL alone.
func byURL(scheme, login string) func(string) nats.Config {
	return func(addr string) nats.Config { return nats.Config{URL: scheme + "://" + login + addr} }
}

// Servers authenticate by password, token, key, and file of credentials, over TLS and without it,
// also with a certificate of their own.
func TestServersAuthenticate(t *testing.T) {
	publish, subscribe := permissions("netloop")
	a := newAuthority(t)
	trust := func(c nats.Config) nats.Config {
		c.TLS = &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
		return c
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	operator, creds := operated(t, publish, subscribe, time.Time{})
	for name, way := range map[string]access{
		"password": {func(o *server.Options) { o.Users = []*server.User{user(publish, subscribe)} }, byURL("nats", "netloop:secret@")},
		"token":    {func(o *server.Options) { o.Authorization = "token" }, byURL("nats", "token@")},
		"key": {func(o *server.Options) {
			o.Nkeys = []*server.NkeyUser{{Nkey: public, Permissions: user(publish, subscribe).Permissions}}
		}, func(addr string) nats.Config { return nats.Config{URL: "nats://" + addr, NKey: file(t, seed)} }},
		"credentials over TLS": {func(o *server.Options) { operator(o); o.TLSConfig = serverTLS(a.good(t)) }, func(addr string) nats.Config {
			return trust(nats.Config{URL: "tls://" + addr, Credentials: creds})
		}},
		"certificate": {func(o *server.Options) {
			o.TLSConfig = serverTLS(a.good(t))
			o.TLSConfig.ClientAuth, o.TLSConfig.ClientCAs, o.TLSVerify = tls.RequireAndVerifyClientCert, a.pool, true
		}, func(addr string) nats.Config {
			c := trust(nats.Config{URL: "tls://" + addr})
			c.TLS.Certificates = []tls.Certificate{a.certificate(t, "server", time.Now().Add(time.Hour))}
			return c
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := way.member(startWith(t, way.server))
			cfg.Beat = beat
			c := join(t, cfg, "a")
			if _, err := c.Claim(within(t, 30*time.Second), "room/oak", 0); err != nil {
				t.Errorf("Claim: %v: %s", err, c.Health().Text)
			}
		})
	}
}

// join joins a cluster by a configuration.
func join(t *testing.T, cfg nats.Config, id string) cluster.Cluster {
	t.Helper()
	c, err := nats.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(within(t, time.Second)) })
	if err := c.Join(within(t, 30*time.Second), cluster.Member{Server: cluster.Server{ID: id}}); err != nil {
		t.Fatalf("Join: %v: %s", err, c.Health().Text)
	}
	return c
}

// without returns the subjects except one.
func without(subjects []string, not string) (rest []string) {
	for _, s := range subjects {
		if s != not {
			rest = append(rest, s)
		}
	}
	return rest
}

// Each refusal of NATS is explained by Join and by Health, with the remedy, and a server that is
// refused still ends in time.
func TestRefusalsAreExplained(t *testing.T) {
	publish, subscribe := permissions("netloop")
	a, other := newAuthority(t), newAuthority(t)
	users := func(publish, subscribe []string) func(*server.Options) {
		return func(o *server.Options) { o.Users = []*server.User{user(publish, subscribe)} }
	}
	secure := func(c tls.Certificate) func(*server.Options) {
		return func(o *server.Options) { o.TLSConfig = serverTLS(c) }
	}
	trusting := func(scheme string) func(string) nats.Config {
		return func(addr string) nats.Config {
			return nats.Config{URL: scheme + "://" + addr, TLS: &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}}
		}
	}
	expired, expiredFile := operated(t, publish, subscribe, time.Now().Add(-time.Hour))
	right := byURL("nats", "netloop:secret@")
	const permission = "the user of NATS lacks a permission: docs/SCALING.md lists all: "
	for name, tt := range map[string]struct {
		access
		want string
	}{
		"wrong password":           {access{users(publish, subscribe), byURL("nats", "netloop:wrong@")}, "NATS refuses the credentials: check the user and password"},
		"no password":              {access{users(publish, subscribe), byURL("nats", "")}, "NATS refuses the credentials: check the user and password"},
		"expired credentials":      {access{expired, func(addr string) nats.Config { return nats.Config{URL: "nats://" + addr, Credentials: expiredFile} }}, "NATS refuses the credentials"},
		"another authority":        {access{secure(other.good(t)), trusting("tls")}, "signed by an unknown authority: name the file of its CA"},
		"no authority":             {access{secure(a.good(t)), byURL("tls", "")}, "signed by an unknown authority: name the file of its CA"},
		"another name":             {access{secure(a.certificate(t, "nats.example.org", time.Now().Add(time.Hour))), trusting("tls")}, "the certificate of NATS is for other names"},
		"an expired certificate":   {access{secure(a.certificate(t, "127.0.0.1", time.Now().Add(-time.Hour))), trusting("tls")}, "the certificate of NATS is not valid"},
		"TLS that is not offered":  {access{func(*server.Options) {}, trusting("tls")}, "NATS offers no TLS"},
		"no heartbeats":            {access{users(without(publish, publish[0]), subscribe), right}, permission},
		"no subscriptions":         {access{users(publish, without(subscribe, subscribe[0])), right}, permission},
		"no answers":               {access{users(publish, without(subscribe, subscribe[1])), right}, permission},
		"no creation of the store": {access{users(without(publish, publish[1]), subscribe), right}, permission},
		"no state of the store":    {access{users(without(publish, publish[2]), subscribe), right}, permission},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := tt.member(startWith(t, tt.server))
			cfg.Beat = beat
			c, err := nats.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 15*beat)
			defer cancel()
			err = c.Join(ctx, cluster.Member{Server: cluster.Server{ID: "a"}})
			eventually(t, 30*time.Second, "explained", func() bool { h := c.Health(); return !h.OK && strings.Contains(h.Text, tt.want) })
			if name != "no subscriptions" && (!errors.Is(err, cluster.ErrBusy) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Join: %v", err)
			}
			if err := c.Close(within(t, 10*time.Second)); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// A missing file of a key is an error of Join, not a fault of the network.
func TestMissingKeysAreErrors(t *testing.T) {
	addr := startWith(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{} })
	for name, cfg := range map[string]nats.Config{
		"key": {URL: "nats://" + addr, NKey: "/nowhere"}, "credentials": {URL: "nats://" + addr, Credentials: "/nowhere"},
	} {
		if name == "credentials" { // They are read when the server asks for them.
			operator, _ := operated(t, nil, nil, time.Time{})
			cfg.URL = "nats://" + startWith(t, operator)
		}
		c, err := nats.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Join(within(t, 30*time.Second), cluster.Member{Server: cluster.Server{ID: "a"}})
		if err == nil || errors.Is(err, cluster.ErrBusy) || !strings.Contains(err.Error(), "/nowhere") {
			t.Errorf("%s: Join: %v", name, err)
		}
		if err := c.Close(within(t, time.Second)); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
}

// A password that an operator corrects is noticed without a restart.
func TestACorrectedPasswordIsNoticed(t *testing.T) {
	publish, subscribe := permissions("netloop")
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	o.Users = []*server.User{{Username: "netloop", Password: "old"}}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not start")
	}
	c, err := nats.New(nats.Config{URL: fmt.Sprintf("nats://netloop:secret@%v", s.Addr()), Beat: beat})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(within(t, time.Second)) }()
	if err := c.Join(within(t, 20*beat), cluster.Member{Server: cluster.Server{ID: "a"}}); !errors.Is(err, cluster.ErrBusy) {
		t.Fatalf("Join: %v", err)
	}
	changed := o.Clone()
	changed.Port = s.Addr().(*net.TCPAddr).Port
	changed.Users = []*server.User{user(publish, subscribe)}
	if err := s.ReloadOptions(changed); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "joined", func() bool { return c.Health().OK })
}
