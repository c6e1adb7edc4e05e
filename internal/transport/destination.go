package transport

import (
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Destination is the server to which a client moves: its addresses, at most MaxAddresses.
type Destination []Address

// Address is the address of a server for one carrier.
type Address struct {
	Carrier string   // quic, webtransport or websocket
	Addr    string   // host and port; for webtransport and websocket also the URL
	Name    string   // in the server's certificate; empty: the host of Addr
	Hashes  [][]byte // SHA-256 of certificates that no authority has signed
}

// The limits of a destination. With all of them a frame moved has less than 6 KiB.
const (
	MaxAddresses = 8
	maxHashes    = 4
	maxAddress   = 256 // bytes of each text of an address
)

// MovedTo is the answer to a hello for a room of another server: the server of the room, and the
// ticket for the room.
type MovedTo struct {
	Ticket string
	To     Destination
}

// Check returns an error for a destination beyond the limits of the wire.
func (d Destination) Check() error {
	if len(d) == 0 || len(d) > MaxAddresses {
		return fmt.Errorf("destination has %d addresses, use 1 to %d", len(d), MaxAddresses)
	}
	for _, a := range d {
		if !utf8.ValidString(a.Carrier + a.Addr + a.Name) {
			return fmt.Errorf("address %q is not UTF-8", a.Addr)
		}
		if a.Carrier == "" || a.Addr == "" || max(len(a.Carrier), len(a.Addr), len(a.Name)) > maxAddress || len(a.Hashes) > maxHashes {
			return fmt.Errorf("address %q of %q is empty or too long, or has more than %d hashes", a.Addr, a.Carrier, maxHashes)
		}
		for _, h := range a.Hashes {
			if len(h) != sha256.Size {
				return fmt.Errorf("address %q: a hash has %d bytes, not %d", a.Addr, len(h), sha256.Size)
			}
		}
	}
	return nil
}

// fits reports whether the move can be sent.
func (m *MovedTo) fits() bool {
	return m.Ticket != "" && len(m.Ticket) <= maxTicketText && utf8.ValidString(m.Ticket) && m.To.Check() == nil
}

// message returns the encoded form of a move to another server.
func (m *MovedTo) message() *netloopv1.Move {
	to := &netloopv1.Destination{}
	for _, a := range m.To {
		to.Addresses = append(to.Addresses, &netloopv1.Address{Carrier: a.Carrier, Addr: a.Addr, Name: a.Name, Hashes: a.Hashes})
	}
	return &netloopv1.Move{Ticket: m.Ticket, To: to}
}

// movedTo returns the move of a refusal, or nil without one. A move beyond the limits is none.
func movedTo(m *netloopv1.Move) *MovedTo {
	moved := &MovedTo{Ticket: m.GetTicket()}
	for _, a := range m.GetTo().GetAddresses() {
		moved.To = append(moved.To, Address{Carrier: a.GetCarrier(), Addr: a.GetAddr(), Name: a.GetName(), Hashes: a.GetHashes()})
	}
	if !moved.fits() {
		return nil
	}
	return moved
}

// parseDestination reads the destination of a frame moved.
func parseDestination(b []byte) (d Destination, err error) {
	w := walk(b, &destinationFields)
	for w.next() {
		if len(d) == MaxAddresses {
			w.err = errFrame
			break
		}
		var a Address
		a, w.err = parseAddress(w.bytes)
		d = append(d, a)
	}
	if w.err == nil && d.Check() != nil {
		w.err = errFrame
	}
	return d, w.err
}

func parseAddress(b []byte) (a Address, err error) {
	w := walk(b, &addressFields)
	for w.next() {
		switch w.num {
		case 1:
			a.Carrier = w.text()
		case 2:
			a.Addr = w.text()
		case 3:
			a.Name = w.text()
		case 4:
			if len(a.Hashes) == maxHashes {
				w.err = errFrame
				break
			}
			a.Hashes = append(a.Hashes, append([]byte(nil), w.bytes...))
		}
	}
	return a, w.err
}

// Travel tells the client to move to a room of another server. The session continues until the
// client closes it with CodeMoved. It reports false if the client cannot move to another server, or
// if the destination is beyond the limits of the wire.
func (s *Session) Travel(m MovedTo) bool {
	if !s.cfg.Travels || s.out.closed || !m.fits() {
		return false
	}
	// AppendFrame cannot fail here: a move that fits has texts of valid UTF-8.
	s.out.reliable.buf, _ = AppendFrame(s.out.reliable.buf, &netloopv1.Frame{Kind: &netloopv1.Frame_Moved{Moved: m.message()}})
	s.stats.FramesOut.Add(1)
	s.LetTravel()
	return true
}

// LetTravel lets the client close the session with CodeMoved: it was told to move to another server
// over an earlier connection.
func (s *Session) LetTravel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.box.travels = true
}
