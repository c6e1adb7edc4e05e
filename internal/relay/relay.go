// Package relay is a UDP relay in user space, for tests: it stands between clients and a
// server and changes the addresses under which the server sees them.
//
//	client ──▶ front, the address that the client dials
//	             │  one path per client: a socket of its own
//	             ▼
//	           server, which takes the path's address for the client's
//
// A home router does the same, and forgets its table of paths now and then: Rebind.
package relay

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// maxDatagram is the longest UDP payload, so that nothing is cut.
const maxDatagram = 1<<16 - 1

// Relay forwards between any number of clients and one server.
type Relay struct {
	front  *net.UDPConn
	server *net.UDPAddr
	copies sync.WaitGroup

	mu     sync.Mutex
	paths  map[netip.AddrPort]*net.UDPConn // by the client's address
	closed bool
}

// Listen opens a relay on the loopback for the server at an address.
func Listen(server net.Addr) (*Relay, error) {
	to, err := net.ResolveUDPAddr("udp", server.String())
	if err != nil {
		return nil, err
	}
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	r := &Relay{front: front, server: to, paths: make(map[netip.AddrPort]*net.UDPConn)}
	r.copies.Go(r.forward)
	return r, nil
}

// Addr is what clients dial.
func (r *Relay) Addr() net.Addr { return r.front.LocalAddr() }

// Paths returns the addresses under which the server sees the clients.
func (r *Relay) Paths() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []netip.AddrPort
	for _, path := range r.paths {
		all = append(all, path.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	return all
}

// Rebind gives every client another address from its next datagram on. What is under way
// to the old ones is lost.
func (r *Relay) Rebind() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forgetLocked()
}

func (r *Relay) forgetLocked() error {
	var err error
	for client, path := range r.paths {
		err = errors.Join(err, path.Close())
		delete(r.paths, client)
	}
	return err
}

// Close ends the relay and returns when its goroutines have ended.
func (r *Relay) Close() error {
	r.mu.Lock()
	r.closed = true
	err := errors.Join(r.forgetLocked(), r.front.Close())
	r.mu.Unlock()
	r.copies.Wait()
	return err
}

// forward copies from the clients to the server until Close.
func (r *Relay) forward() {
	buf := make([]byte, maxDatagram)
	for {
		n, client, err := r.front.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		if path := r.path(client); path != nil {
			_, _ = path.Write(buf[:n]) // Like a router, it tells nobody what it loses.
		}
	}
}

// path returns the way of a client to the server, and makes one if there is none.
func (r *Relay) path(client netip.AddrPort) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := r.paths[client]
	if path != nil || r.closed {
		return path
	}
	path, err := net.DialUDP("udp", nil, r.server)
	if err != nil {
		return nil
	}
	r.paths[client] = path
	r.copies.Go(func() { r.back(client, path) })
	return path
}

// back copies from the server to a client until the path is closed.
func (r *Relay) back(client netip.AddrPort, path *net.UDPConn) {
	buf := make([]byte, maxDatagram)
	for {
		n, err := path.Read(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil:
			_, _ = r.front.WriteToUDPAddrPort(buf[:n], client)
		}
	}
}
