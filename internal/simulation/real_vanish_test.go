package simulation

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/transport"
)

// vanish is the event of a client that disappears during its handshake, at any byte of it.
const vanish = "vanish"

// The ways in which such a client ends.
const (
	resets = iota
	closes
	halfCloses
	fallsSilent
	endings
)

// vanishing is how a client disappears, by the bits of the event's number.
type vanishing struct {
	small  bool          // it has a small receive buffer
	pings  int           // that it sends before its hello; it does not read their pongs
	share  int           // of the bytes of the last part, of 256
	part   int           // the last part: 0 is the upgrade, 1 and more the hello
	ending int           // how it ends
	after  time.Duration // when
	sent   int           // datagrams until the end, over QUIC
}

func vanishingOf(n uint64) vanishing {
	v := vanishing{
		small: n%4 > 0, pings: []int{0, 8, 48, 48}[n>>2%4], share: int(n >> 4 % 256), part: int(n >> 12 % 8),
		ending: int(n >> 16 % endings), after: []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond, time.Second}[n>>20%4],
		sent: int(n >> 24 % 12),
	}
	if v.part > 2 {
		v.share = 256 // Most clients send the whole hello.
	}
	return v
}

func (v vanishing) String() string {
	return fmt.Sprintf("small %v, %d pings, %d/256 of part %d, ending %d after %v, %d datagrams", v.small, v.pings, v.share, v.part, v.ending, v.after, v.sent)
}

// vanish begins a handshake and ends it somewhere.
func (c *realClient) vanish(ctx context.Context, e *Event, g transport.Greeting, conf transport.SessionConfig) {
	v := vanishingOf(e.N)
	if c.join.Carrier == overWebSocket {
		if socket := c.halfWebSocket(v, g); socket != nil {
			<-ctx.Done()
			_ = socket.Close()
		}
		return
	}
	c.link.cutAfter(v.sent)
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	_, _, _ = c.connect(ctx, g, conf)
	c.link.cut(true, true) // All of the handshake may have arrived.
}

// halfWebSocket sends a part of the handshake of a WebSocket, and ends. It returns a socket that
// stays open.
func (c *realClient) halfWebSocket(v vanishing, g transport.Greeting) net.Conn {
	hello, err := g.Open([]byte{0}) // A message of the stream.
	if err != nil {
		return nil
	}
	at := c.w.server.WebAddr().String()
	made, err := dialer(v.small).Dial("tcp", at)
	if err != nil {
		return nil
	}
	socket := made.(*net.TCPConn)
	_ = socket.SetDeadline(time.Now().Add(dialTime))
	upgrade := []byte("GET /netloop HTTP/1.1\r\nHost: " + at + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: " + wsnet.Protocol + "\r\n\r\n")
	if v.part == 0 {
		_, _ = socket.Write(upgrade[:len(upgrade)*v.share/256])
		return end(socket, v)
	}
	_, _ = socket.Write(upgrade)
	for answer := []byte{}; !bytes.HasSuffix(answer, []byte("\r\n\r\n")); {
		one := make([]byte, 1)
		if _, err := socket.Read(one); err != nil {
			break
		}
		answer = append(answer, one...)
	}
	for range v.pings {
		_, _ = socket.Write(frame(9, make([]byte, 125)))
	}
	b := frame(2, hello)
	_, _ = socket.Write(b[:len(b)*v.share/256])
	return end(socket, v)
}

// end ends a connection, or returns it.
func end(socket *net.TCPConn, v vanishing) net.Conn {
	time.Sleep(v.after)
	switch v.ending {
	case resets:
		_ = socket.SetLinger(0)
		_ = socket.Close()
	case closes:
		_ = socket.Close()
	case halfCloses:
		_ = socket.CloseWrite()
		return socket
	case fallsSilent:
		return socket
	}
	return nil
}

// frame is a masked frame of a client, with a key of zero.
func frame(kind byte, b []byte) []byte {
	head := []byte{0x80 | kind, 0x80 | byte(len(b))}
	if len(b) > 125 {
		head[1] = 0x80 | 126
		head = binary.BigEndian.AppendUint16(head, uint16(len(b)))
	}
	return append(append(head, 0, 0, 0, 0), b...)
}
