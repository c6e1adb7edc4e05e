package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app/internal/embedded"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/internal/net/quicnet"
)

// clusterEmbed is the value of --cluster that starts a NATS server in this process.
const clusterEmbed = "embed"

// onePlace returns the policy of --cluster-one-place, or 0 for an unknown text.
func onePlace(text string) netloop.DuplicatePolicy {
	switch text {
	case "":
		return netloop.DuplicateAllow
	case "take-over":
		return netloop.DuplicateTakeOver
	case "refuse":
		return netloop.DuplicateRefuse
	}
	return 0
}

// clusterRules are the requirements of the options of a cluster.
func (o *options) clusterRules() (rules []rule) {
	embeds := o.Cluster == clusterEmbed
	if o.Cluster == "" {
		for _, s := range []struct{ key, value string }{
			{"cluster-name", o.ClusterName}, {"cluster-creds", o.ClusterCreds}, {"cluster-ca", o.ClusterCA}, {"cluster-listen", o.ClusterListen},
			{"cluster-routes", o.ClusterRoutes}, {"region", o.Region}, {"zone", o.Zone}, {"public-addr", o.PublicAddr},
			{"cluster-one-place", o.OnePlace},
		} {
			rules = append(rules, rule{s.value != "", s.key, s.value, "set cluster too: embed, or the URL of NATS such as nats://10.0.0.5:4222"})
		}
		return append(rules, rule{o.HandOver, "hand-over", o.HandOver, "set cluster too: rooms move to its other servers"},
			rule{o.LocalTokens, "cluster-local-tokens", o.LocalTokens, "set cluster too"})
	}
	host, _, err := net.SplitHostPort(o.Listen)
	rules = []rule{
		{onePlace(o.OnePlace) == 0, "cluster-one-place", o.OnePlace, "use take-over or refuse, or leave it out"},
		{!embeds && !strings.Contains(o.Cluster, "://"), "cluster", o.Cluster, "use embed, or the URL of NATS such as nats://10.0.0.5:4222"},
		{embeds && embedded.Start == nil, "cluster", o.Cluster, "this program contains no NATS server: build it with -tags embednats, import app/embednats in its main function, or use the URL of one"},
		{!embeds && (o.ClusterListen != "" || o.ClusterRoutes != ""), "cluster-listen", o.ClusterListen + o.ClusterRoutes, "cluster-listen and cluster-routes are for --cluster embed"},
		{embeds && (o.ClusterCreds != "" || o.ClusterCA != ""), "cluster-creds", o.ClusterCreds + o.ClusterCA, "cluster-creds and cluster-ca are for the URL of NATS"},
		{o.ClusterListen != "" && !hostPort(o.ClusterListen), "cluster-listen", o.ClusterListen, "use host:port, for instance 10.0.0.7:4222"},
		{o.PublicAddr != "" && !hostPort(o.PublicAddr), "public-addr", o.PublicAddr, "use host:port, for instance 203.0.113.7:4433"},
		{o.PublicAddr == "" && !o.Agones && err == nil && everywhere(host), "public-addr", o.PublicAddr, "name the address at which players reach this server: listen is on all addresses of the machine"},
	}
	for _, r := range o.routes() {
		rules = append(rules, rule{!hostPort(r), "cluster-routes", o.ClusterRoutes, "use host:port,host:port,host:port, the same at each server"})
	}
	return rules
}

// routes returns the addresses of the embedded NATS servers, this one first.
func (o *options) routes() []string {
	return strings.FieldsFunc(o.ClusterRoutes, func(r rune) bool { return r == ',' || r == ' ' })
}

// clusterConnection is the connection of a server to its cluster, and the NATS server in this
// process, if there is one. Nil is none.
type clusterConnection struct {
	via  netloop.Cluster
	url  string
	stop func()
}

// openCluster prepares the connection to the cluster. Server.Listen joins.
func (c *configuration) openCluster(environ []string, log *slog.Logger) (_ *clusterConnection, err error) {
	o := c.options
	if o.Cluster == "" {
		return nil, nil
	}
	u := &clusterConnection{url: o.Cluster, stop: func() {}}
	cfg := nats.Config{URL: o.Cluster, Name: o.ClusterName, Log: log}
	if o.Cluster == clusterEmbed {
		if u.url, u.stop, err = c.embedNATS(environ); err != nil {
			return nil, err
		}
		cfg.URL = u.url
	}
	if o.ClusterCA != "" {
		if cfg.TLS, err = trusting(o.ClusterCA); err != nil {
			return nil, c.bad("cluster-ca", o.ClusterCA, err.Error())
		}
	}
	if o.ClusterCreds != "" {
		if err := authenticate(&cfg, o.ClusterCreds); err != nil {
			return nil, c.bad("cluster-creds", o.ClusterCreds, err.Error())
		}
	}
	via, err := nats.New(cfg)
	if err != nil {
		u.stop()
		return nil, c.bad("cluster", o.Cluster, err.Error())
	}
	u.via = netloop.Cluster{Via: via, Region: o.Region, Zone: o.Zone, Addr: o.PublicAddr, HandOver: o.HandOver, LocalTokens: o.LocalTokens, Duplicate: onePlace(o.OnePlace)}
	return u, nil
}

// config returns the server's membership.
func (u *clusterConnection) config() netloop.Cluster {
	if u == nil {
		return netloop.Cluster{}
	}
	return u.via
}

// line returns the description of the cluster for the banner.
func (u *clusterConnection) line(s *netloop.Server) string {
	if u == nil {
		return ""
	}
	return u.redacted() + ", as server " + s.ID()
}

// redacted returns the URL of NATS without passwords.
func (u *clusterConnection) redacted() string {
	all := strings.Split(u.url, ",")
	for i, one := range all {
		if parsed, err := url.Parse(one); err == nil {
			all[i] = parsed.Redacted()
		}
	}
	return strings.Join(all, ",")
}

// addresses adds the cluster to the content of the address file.
func (u *clusterConnection) addresses(at *addresses, s *netloop.Server) {
	if u != nil {
		at.Server, at.Cluster = s.ID(), u.redacted()
	}
}

// close ends the NATS server in this process, if there is one.
func (u *clusterConnection) close() {
	if u != nil {
		u.stop()
	}
}

// authenticate sets the file of credentials, or of a key if it begins with the seed of a user.
func authenticate(cfg *nats.Config, file string) error {
	const userSeed = "SU"
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("name a readable file: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 1<<10)) // Its beginning tells the kind.
	if err != nil {
		return fmt.Errorf("name a readable file: %w", err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(text)), userSeed) {
		cfg.NKey = file
	} else {
		cfg.Credentials = file
	}
	return nil
}

// trusting returns a configuration that trusts the authorities of a PEM file.
func trusting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("name a readable file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("use a PEM file with the certificate of the authority of NATS")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// embedNATS starts a NATS server in this process. Its data is in the state directory or, without
// one, in a temporary folder, which is removed at the end.
func (c *configuration) embedNATS(environ []string) (url string, stop func(), err error) {
	o := c.options
	routes := o.routes()
	password, err := c.clusterPassword(environ)
	if err != nil {
		return "", nil, err
	}
	cfg := embedded.Config{Listen: o.ClusterListen, Routes: routes, Password: password}
	if password != "" {
		cfg.User = "netloop"
	}
	if len(routes) > 0 {
		cfg.RoutesListen = routes[0]
		cfg.Name = "netloop-" + strings.NewReplacer(":", "-", ".", "-", "[", "", "]", "").Replace(routes[0])
	}
	cleanUp := func() {}
	if dir := o.stateDir(environ); dir != "" {
		cfg.Dir = filepath.Join(dir, "nats")
	} else if cfg.Dir, err = os.MkdirTemp("", "netloop-nats-"); err != nil {
		return "", nil, c.bad("cluster", o.Cluster, "set state-dir: "+err.Error())
	} else {
		cleanUp = func() { _ = os.RemoveAll(cfg.Dir) }
	}
	url, end, err := embedded.Start(cfg)
	if err != nil {
		cleanUp()
		return "", nil, c.bad("cluster", o.Cluster, err.Error())
	}
	return url, func() { end(); cleanUp() }, nil
}

// clusterPassword returns the password of the embedded NATS server. Addresses that other machines
// reach need one.
func (c *configuration) clusterPassword(environ []string) (string, error) {
	const name = "NETLOOP_CLUSTER_PASSWORD"
	if password := variable(environ, name); password != "" {
		return password, nil
	}
	o := c.options
	own := ""
	if routes := o.routes(); len(routes) > 0 {
		own = routes[0]
	}
	for _, addr := range []string{o.ClusterListen, own} {
		if addr != "" && !quicnet.OnLoopback(addr) {
			host, _, _ := net.SplitHostPort(addr)
			return "", c.bad("cluster-listen", addr, "other machines reach "+host+": set the environment variable "+name+", the same for all servers")
		}
	}
	return "", nil
}
