// Package embed runs a NATS server inside of the program: for development, for tests, and for a
// cluster of up to three machines that stay. A program that does not import it does not contain
// the server.
//
//	s, err := embed.Start(embed.Config{Dir: "nats"})
//	c, err := nats.New(nats.Config{URL: s.URL()})
//
// One server keeps names only as long as its machine lives. Three servers that know each other
// keep them while two of the three run.
package embed

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Config describes a NATS server.
type Config struct {
	// Dir is the folder of its data. It must not be shared.
	Dir string
	// Listen is the address for clients. Empty is a free port of this machine.
	Listen string
	// Name is the server's name, different for each server of a NATS cluster, and the same after a
	// restart.
	Name string
	// Routes are the addresses of the servers of the NATS cluster, this one included, for the
	// connections between them. Empty is a single server. RoutesListen is this server's own one.
	Routes       []string
	RoutesListen string
	// User and Password are required from clients and from other servers. Empty is no password:
	// then Listen and RoutesListen must be reached by trusted machines only.
	User, Password string
	// NoAdvertise keeps the addresses of the other servers of the NATS cluster from clients, which
	// then use those of their URL alone: for clients that reach the servers through proxies.
	NoAdvertise bool

	advertise string // the address of its routes for others; empty is RoutesListen
}

// Server is a running NATS server.
type Server struct {
	server *server.Server
	cfg    Config
}

const (
	// startTime is the limit of a start.
	startTime = 10 * time.Second
	// maxPayload is the limit of a message; netloop's are at most half of it.
	maxPayload = 1 << 20
	// maxConnections is the limit of clients: one for each server of a cluster, and tools.
	maxConnections = 1100
	// maxStore is the limit of the data on the disk, of which each cluster reserves 64 MiB.
	maxStore = 1 << 30
)

// Start starts a server. A server of a cluster does not wait for the others.
func Start(cfg Config) (*Server, error) {
	o := &server.Options{
		ServerName: cfg.Name, JetStream: true, StoreDir: filepath.Clean(cfg.Dir), MaxPayload: maxPayload, MaxConn: maxConnections,
		JetStreamMaxStore: maxStore, JetStreamMaxMemory: -1, NoSigs: true, NoLog: true,
		Username: cfg.User, Password: cfg.Password, DisableJetStreamBanner: true,
	}
	var err error
	if o.Host, o.Port, err = address("Listen", cfg.Listen); err != nil {
		return nil, err
	}
	if cfg.Dir == "" {
		return nil, fmt.Errorf("cluster/nats/embed: Config.Dir is empty: use a folder of this server alone")
	}
	if len(cfg.Routes) > 0 {
		o.Cluster.Name, o.Cluster.Username, o.Cluster.Password = "netloop", cfg.User, cfg.Password
		if o.Cluster.Host, o.Cluster.Port, err = address("RoutesListen", cfg.RoutesListen); err != nil {
			return nil, err
		}
		o.Cluster.Advertise, o.Cluster.NoAdvertise = cfg.advertise, cfg.NoAdvertise
		for _, r := range cfg.Routes {
			u := &url.URL{Scheme: "nats-route", Host: r}
			if cfg.User != "" {
				u.User = url.UserPassword(cfg.User, cfg.Password)
			}
			o.Routes = append(o.Routes, u)
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, fmt.Errorf("cluster/nats/embed: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTime) {
		s.Shutdown()
		return nil, fmt.Errorf("cluster/nats/embed: the server does not start on %s within %v", cfg.Listen, startTime)
	}
	return &Server{s, cfg}, nil
}

// address splits a host and port. Empty is a free port of this machine.
func address(field, addr string) (host string, port int, err error) {
	if addr == "" {
		return "127.0.0.1", server.RANDOM_PORT, nil
	}
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("cluster/nats/embed: Config.%s %q: use host:port", field, addr)
	}
	return host, port, nil
}

// URL returns the address for the server of this program, with user and password.
func (s *Server) URL() string {
	u := &url.URL{Scheme: "nats", Host: s.server.Addr().String()}
	if s.cfg.User != "" {
		u.User = url.UserPassword(s.cfg.User, s.cfg.Password)
	}
	return u.String()
}

// Close ends the server. It returns when all its goroutines have ended their work.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}
