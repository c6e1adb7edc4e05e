package main

import (
	"context"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/netloop/netloop/cluster/nats/embed"
)

// NATS servers as processes of their own, and the routes of the game servers to them.

// natsServers is the number of NATS servers of the run with faults.
const natsServers = 3

// natsServer starts a NATS server, for the first time or again.
func (f *fleet) natsServer(ctx context.Context, i int) (*process, error) {
	routes := append([]string{f.routes[i]}, slices.Delete(slices.Clone(f.routes), i, i+1)...)
	name := "nats-" + string(rune('0'+i))
	return f.launch(ctx, name, asNATS, "--dir", filepath.Join(f.dir, name), "--listen", f.listens[i], "--routes", strings.Join(routes, ","))
}

// serveNATS runs this process as a NATS server until its input ends, which is at the end of the
// fleet.
func serveNATS(args []string) error {
	var cfg embed.Config
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	flags.StringVar(&cfg.Dir, "dir", "", "folder of the data")
	flags.StringVar(&cfg.Listen, "listen", "", "address for clients")
	routes := flags.String("routes", "", "addresses of the servers, this one first")
	file := flags.String("addr-file", "", "file to write when the server runs")
	flags.String("log-level", "", "not used")
	if err := flags.Parse(args); err != nil {
		return err
	}
	cfg.Routes = strings.Split(*routes, ",")
	cfg.RoutesListen, cfg.Name = cfg.Routes[0], filepath.Base(cfg.Dir)
	cfg.NoAdvertise = true // Otherwise clients would pass the routes by.
	s, err := embed.Start(cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := os.WriteFile(*file, []byte("{}"), 0o600); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// route is the way of one server to NATS: a TCP proxy to the first NATS server that runs.
type route struct {
	listener net.Listener
	to       []string // addresses of NATS servers, the preferred one first

	mu    sync.Mutex
	moved *sync.Cond // signals a change of state
	state routeState
	conns map[net.Conn]bool
}

type routeState int

const (
	open    routeState = iota
	cut                // connections are closed, and new ones too
	stalled            // connections remain and are accepted, but no byte passes
)

// newRoute starts a proxy on a free port of this machine.
func newRoute(to []string) (*route, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &route{listener: l, to: to, conns: map[net.Conn]bool{}}
	r.moved = sync.NewCond(&r.mu)
	go r.accept()
	return r, nil
}

func (r *route) addr() string { return r.listener.Addr().String() }

// set changes the state of the route. The bytes of a stalled route arrive later.
func (r *route) set(s routeState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
	for c := range r.conns {
		if s == cut {
			_ = c.Close()
		}
	}
	r.moved.Broadcast()
}

// close ends the proxy.
func (r *route) close() {
	_ = r.listener.Close()
	r.set(cut)
}

func (r *route) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to := r.dial()
		r.mu.Lock()
		if to == nil || r.state == cut {
			_ = from.Close()
			if to != nil {
				_ = to.Close()
			}
		} else {
			r.conns[from], r.conns[to] = true, true
			go r.pass(to, from)
			go r.pass(from, to)
		}
		r.mu.Unlock()
	}
}

// dial connects to the first NATS server that runs, or returns nil.
func (r *route) dial() net.Conn {
	for _, addr := range r.to {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c
		}
	}
	return nil
}

// pass copies the bytes of one direction until a connection ends.
func (r *route) pass(to, from net.Conn) {
	defer func() {
		_, _ = to.Close(), from.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, to)
		delete(r.conns, from)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		for r.state == stalled {
			r.moved.Wait()
		}
		r.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
