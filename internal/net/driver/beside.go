package driver

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Beside is a cheaper path for the datagrams of a connection, outside of the connection itself. A
// connection may have no such path.
type Beside interface {
	// Start begins to receive. For each datagram it calls receive: the data is b[at:], number has
	// the low 32 bits of the number that Send got, and waited is the time for which the datagram
	// waited in the socket. receive may change b, but does not keep it. changed is called when a
	// result of the methods below has changed. Any goroutine may call both functions.
	Start(receive func(b []byte, at int, number uint32, waited time.Duration), changed func())
	// Stop ends the path. Calls of receive and changed may still run.
	Stop()
	// Active reports whether datagrams are currently sent on this path.
	Active() bool
	// Send sends the data of a datagram with a number, of which the peer gets the low 32 bits. It
	// neither waits nor keeps data.
	Send(number uint32, data []byte)
	// PeerReturned reports that the peer has sent a datagram over the connection.
	PeerReturned()
	// RTT returns the smoothed round trip, or 0 while it is not known.
	RTT() time.Duration
	// RemoteAddr returns the same pointer until the address changes.
	RemoteAddr() net.Addr
}

// WithBeside is a Conn that may have such a path.
type WithBeside interface {
	Conn
	// Beside returns the path, or nil. It is called once.
	Beside() Beside
}

// beside is the part of a driver for a [WithBeside].
type beside struct {
	Beside                // nil: none
	receiving sync.Mutex  // held while a goroutine passes a datagram to the link
	newest    uint64      // number of a received datagram; under receiving
	news      atomic.Bool // a result of Beside has changed
}

// begin starts the path beside the connection.
func (d *driver) begin() {
	if d.beside.Beside != nil {
		d.beside.Start(d.receiveBeside, func() {
			d.beside.news.Store(true)
			d.wakeWriter()
		})
	}
}

// besideActive reports whether datagrams are sent beside the connection.
func (d *driver) besideActive() bool { return d.beside.Beside != nil && d.beside.Active() }

// sendDatagram sends one datagram of the writer, beside the connection if that is possible.
// Otherwise it blocks while the peer does not accept data.
func (d *driver) sendDatagram(b []byte) error {
	if !d.besideActive() && d.simulation.Load() == nil {
		return d.Conn.SendDatagram(b)
	}
	return d.sendBeside(b)
}

// sendBeside sends one datagram beside the connection, or into the emulated network. It never
// blocks.
func (d *driver) sendBeside(b []byte) error {
	if s := d.simulation.Load(); s != nil {
		s.down.datagram(b)
	} else {
		d.passBeside(b)
	}
	return nil
}

func (d *driver) passBeside(b []byte) {
	number, rest := transport.CutNumber(b)
	d.beside.Send(uint32(number), rest)
}

// receiveBeside handles a datagram that has arrived beside the connection.
func (d *driver) receiveBeside(b []byte, at int, low uint32, waited time.Duration) {
	d.beside.receiving.Lock()
	defer d.beside.receiving.Unlock()
	number := d.beside.newest + uint64(int64(int32(low-uint32(d.beside.newest))))
	d.beside.newest = max(d.beside.newest, number)
	if d.closing() {
		return // A client that was disconnected for sending too much may keep sending.
	}
	datagram := transport.PutNumber(b, at, number)
	if s := d.simulation.Load(); s != nil {
		s.up.datagram(datagram)
		return
	}
	d.Link.ReceiveBorrowed(d.Clock(), waited, datagram)
}
