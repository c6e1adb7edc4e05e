package udpbatch

import (
	"net"
	"testing"
	"time"
)

// TestWaitedGoesByAPacketThatCanHoldTheDatagram: acknowledgements alone are too small for it.
func TestWaitedGoesByAPacketThatCanHoldTheDatagram(t *testing.T) {
	now := time.Now()
	ps := new(Peers)
	p := ps.Follow(&net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 7})
	ago := func(d time.Duration, size int) { p.note(now.Add(-d), size) }
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := p.Waited(100, now); got != want {
			t.Errorf("%s: it has waited %v, want %v", what, got, want)
		}
	}
	expect("nothing has come", 0)
	ago(markAge+1, 1000)
	expect("a packet from long ago", 0)
	// The header's byte, 4 of an id, 1 of a number, 2 of a frame, 16 of the seal (RFC 9000, 17.3).
	const wrapped = 24
	ago(3*time.Millisecond, 100+wrapped)
	expect("a packet that just holds it", 3*time.Millisecond)
	ago(time.Millisecond, 100+wrapped-1)
	expect("a smaller one after it", 3*time.Millisecond)
	ago(time.Millisecond/2, 1000)
	expect("a larger one after it", time.Millisecond/2)
	for range peerMarks {
		ago(0, 1)
	}
	expect("many small ones after it", 0)
	ago(time.Millisecond, 1000)
	ago(-time.Second, 1000)
	expect("a packet from the future, which may be the one", 0)
}

// Forged addresses take no memory, and an address is stored while it is followed, in either of its
// forms.
func TestOnlyFollowedAddressesAreStored(t *testing.T) {
	ps := new(Peers)
	four := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1).To4(), Port: 7}
	mapped := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1).To16(), Port: 7}
	a, b := ps.Follow(four), ps.Follow(mapped)
	if a == nil || a != b {
		t.Fatal("one address is two peers")
	}
	if a.Leave(); ps.byAddr[keyOf(four.AddrPort())] != a {
		t.Error("a peer that somebody follows is forgotten")
	}
	if b.Leave(); len(ps.byAddr) != 0 {
		t.Error("a peer that nobody follows is remembered")
	}
	var nobody *Peers
	if p := nobody.Follow(four); p.Waited(0, time.Now()) != 0 {
		t.Error("without a gate something waits")
	}
	(*Peer)(nil).Leave()
	if ps.Follow(&net.TCPAddr{}) != nil {
		t.Error("an address that is not of UDP is followed")
	}
}
