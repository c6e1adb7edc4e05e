package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/bench/world"
)

// This file has the clients of nano and Pitaya, which speak the same protocol over TCP: packets of
// one byte of kind and three of length.

// The kinds of packets.
const (
	handshakePacket = iota + 1
	handshakeAck
	heartbeatPacket
	dataPacket
	kickPacket
)

// route is the route of the updates. Both servers have it in their dictionary, so that it takes two
// bytes.
const (
	route     = "update"
	routeCode = 1
)

// pomelo is a client's connection.
type pomelo struct {
	conn net.Conn
	in   *bufio.Reader
}

// counting counts the bytes that a connection has read, below TLS.
type counting struct {
	net.Conn
	to *recorder
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.to.read(n)
	return n, err
}

// dialPomelo connects, and joins the room.
func dialPomelo(ctx context.Context, addr string, secure bool, r *recorder) (*pomelo, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn = counting{conn, r}
	if secure {
		// The server is a child of the same program.
		conn = tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
	}
	p := &pomelo{conn, bufio.NewReaderSize(conn, 16<<10)}
	if err := p.join(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return p, nil
}

func (p *pomelo) join() error {
	if err := p.write(handshakePacket, []byte(`{"sys":{"type":"go","version":"1"},"user":{}}`)); err != nil {
		return err
	}
	kind, _, err := p.read(nil)
	if err != nil {
		return err
	}
	if kind != handshakePacket {
		return fmt.Errorf("packet %d instead of a handshake", kind)
	}
	if err := p.write(handshakeAck, nil); err != nil {
		return err
	}
	const notify, join = 1 << 1, "room.join"
	return p.write(dataPacket, append([]byte{notify, byte(len(join))}, join...))
}

func (p *pomelo) write(kind byte, body []byte) error {
	head := []byte{kind, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}
	_, err := p.conn.Write(append(head, body...))
	return err
}

// read reads a packet into b, or into more memory.
func (p *pomelo) read(b []byte) (kind byte, body []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint32(head[:]) & 0xffffff)
	if cap(b) < n {
		b = make([]byte, n)
	}
	_, err = io.ReadFull(p.in, b[:n])
	return head[0], b[:n], err
}

// push returns the data of a message that is an update.
func push(body []byte) ([]byte, error) {
	const pushed, compressedRoute, header = 3 << 1, 1, 3
	if len(body) < header || body[0] != pushed|compressedRoute || binary.BigEndian.Uint16(body[1:]) != routeCode {
		return nil, fmt.Errorf("no update: % x", body[:min(len(body), 8)])
	}
	return body[header:], nil
}

// play reads updates until the connection ends.
func (p *pomelo) play(n int, a *clientArgs, r *recorder) error {
	var b []byte
	var state [world.Entities]world.Body
	for {
		kind, body, err := p.read(b)
		if err != nil {
			return err
		}
		b = body
		switch kind {
		case heartbeatPacket:
			if err := p.write(heartbeatPacket, nil); err != nil {
				return err
			}
		case kickPacket:
			return errors.New("kicked")
		case dataPacket:
			data, err := push(body)
			if err != nil {
				return err
			}
			tick, sent, err := head(data)
			if err != nil {
				return err
			}
			r.update(n, tick, sent, measure.Now())
			if a.decodes(n) {
				decode(data, &state)
			}
			if n == 0 && !isWorld(a.move, uint64(tick), &state) {
				r.differs()
			}
		}
	}
}

// isWorld compares a client's state with the world in a tick.
func isWorld(move world.Motion, tick uint64, state *[world.Entities]world.Body) bool {
	for i := range state {
		if state[i] != move(tick, i) {
			return false
		}
	}
	return true
}

// playPomelo is the clients' program of nano and Pitaya.
func playPomelo(a clientArgs, secure bool) error {
	r := newRecorder()
	err := dialAll(a.clients, func(ctx context.Context, n int) error {
		p, err := dialPomelo(ctx, a.addr, secure, r)
		if err != nil {
			return err
		}
		go func() {
			err := p.play(n, &a, r)
			r.lose(n)
			fmt.Fprintf(os.Stderr, "client %d: %v\n", n, err)
		}()
		return nil
	})
	if err != nil {
		return err
	}
	return control(os.Stdin, os.Stdout, a.clients, r)
}
