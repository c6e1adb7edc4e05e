package transport

import (
	"fmt"
	"strings"
)

// Kind is the transport of a connection. The handshake, the frames and the datagrams are the same
// on every transport.
type Kind uint8

// The transports. Programs use QUIC, the zero value; browsers use the others.
const (
	QUIC         Kind = iota // netloop's protocol directly on a QUIC connection
	WebTransport             // a WebTransport session, on the same UDP port
	WebSocket                // a WebSocket, on the TCP port of the pages
	NumKinds                 // number of transports
)

var kindNames = [NumKinds]string{QUIC: "quic", WebTransport: "webtransport", WebSocket: "websocket"}

// ErrKind is the error of an unknown transport name.
var ErrKind = fmt.Errorf("use %s", strings.Join(kindNames[:NumKinds-1], ", ")+" or "+kindNames[NumKinds-1])

// String returns the transport's name, as in flags and metrics.
func (k Kind) String() string {
	if k >= NumKinds {
		return fmt.Sprintf("transport %d", uint8(k))
	}
	return kindNames[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) {
	if k >= NumKinds {
		return nil, ErrKind
	}
	return []byte(k.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return ErrKind
}
