package transport

import (
	"fmt"
	"strings"
)

// Carrier is the transport of a connection. The handshake, the frames and the datagrams are the
// same on every transport.
type Carrier uint8

// The carriers. Programs use QUIC, the zero value; browsers use the others.
const (
	QUIC         Carrier = iota // a QUIC connection of its own
	WebTransport                // a WebTransport session, on the same UDP port
	WebSocket                   // a WebSocket, on the TCP port of the pages
	NumCarriers                 // number of carriers
)

var carrierNames = [NumCarriers]string{QUIC: "quic", WebTransport: "webtransport", WebSocket: "websocket"}

// ErrCarrier is the error of an unknown carrier name.
var ErrCarrier = fmt.Errorf("use %s", strings.Join(carrierNames[:NumCarriers-1], ", ")+" or "+carrierNames[NumCarriers-1])

// String returns the carrier's name, as in flags and metrics.
func (c Carrier) String() string {
	if c >= NumCarriers {
		return fmt.Sprintf("carrier %d", uint8(c))
	}
	return carrierNames[c]
}

// MarshalText implements encoding.TextMarshaler.
func (c Carrier) MarshalText() ([]byte, error) {
	if c >= NumCarriers {
		return nil, ErrCarrier
	}
	return []byte(c.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Carrier) UnmarshalText(text []byte) error {
	for i, name := range carrierNames {
		if name == string(text) {
			*c = Carrier(i)
			return nil
		}
	}
	return ErrCarrier
}
