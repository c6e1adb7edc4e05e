package quicnet

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/netloop/netloop/internal/net/sealed"
)

// newRecords returns the table for a socket's records. The function write sends records.
func newRecords(stats *sealed.Stats, write func(b, local []byte, to *net.UDPAddr) error) *sealed.Table {
	return sealed.NewTable(sealed.Config{
		Write: write, Stats: stats, Clock: sinceNow(),
		After: func(wait time.Duration, do func()) { time.AfterFunc(wait, do) },
	})
}

// writeRecord sends a sealed record on a socket. If local is set, the record is sent from that
// address.
func writeRecord(on net.PacketConn, b, local []byte, to *net.UDPAddr) (err error) {
	switch on := on.(type) {
	case interface {
		Offer(b, local []byte, to *net.UDPAddr) error
	}:
		return on.Offer(b, local, to)
	case *socket:
		_, _, err = on.WriteMsgUDP(b, nil, to)
	default:
		_, err = on.WriteTo(b, to)
	}
	return err
}

// taker handles a packet if it is a record, and reports whether it is.
type taker func(b []byte, from netip.AddrPort, local []byte, waited time.Duration) bool

// takerOf returns the taker that passes records to a table; or nil if there is no table.
func takerOf(records *sealed.Table) taker {
	if records == nil {
		return nil
	}
	return func(b []byte, from netip.AddrPort, local []byte, waited time.Duration) bool {
		if !sealed.Is(b) {
			return false
		}
		records.Receive(b, from, local, waited)
		return true
	}
}

// filtered returns a socket from which QUIC reads all packets except records, which are passed to
// the table.
func filtered(socket net.PacketConn, records *sealed.Table) net.PacketConn {
	if records == nil {
		return socket
	}
	return &filter{socket, takerOf(records)}
}

// filter is a socket without the records among its packets.
type filter struct {
	net.PacketConn
	take taker
}

// ReadFrom implements net.PacketConn.
func (f *filter) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, addr, err := f.PacketConn.ReadFrom(b)
		at, ok := addr.(*net.UDPAddr)
		if err != nil || !ok || !f.take(b[:n], at.AddrPort(), nil, 0) {
			return n, addr, err
		}
	}
}

// SetReadBuffer sets the size of the kernel's buffer for arriving packets, as QUIC requests.
func (f *filter) SetReadBuffer(bytes int) error {
	if s, ok := f.PacketConn.(interface{ SetReadBuffer(int) error }); ok {
		return s.SetReadBuffer(bytes)
	}
	return errors.ErrUnsupported
}

// SetWriteBuffer sets the size of the kernel's buffer for unsent packets, as QUIC requests.
func (f *filter) SetWriteBuffer(bytes int) error {
	if s, ok := f.PacketConn.(interface{ SetWriteBuffer(int) error }); ok {
		return s.SetWriteBuffer(bytes)
	}
	return errors.ErrUnsupported
}
