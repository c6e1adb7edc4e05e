package nettest

import "net"

// Pipes is a listener in memory: each send on it connects a client.
type Pipes chan net.Conn

// Dial returns the client's end of a new connection, once it is accepted.
func (p Pipes) Dial() net.Conn {
	client, server := net.Pipe()
	p <- server
	return client
}

// Accept implements net.Listener.
func (p Pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener. It is called once.
func (p Pipes) Close() error { close(p); return nil }

// Addr implements net.Listener.
func (Pipes) Addr() net.Addr { return &net.TCPAddr{} }
