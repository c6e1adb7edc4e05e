package door

import (
	"net"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// While nobody can come in, some are heard all the same, at a rate; the others are counted by what
// keeps them out.
func TestSomeAreHeardWhileNobodyCanComeIn(t *testing.T) {
	code, hear, stats := transport.CodeFull, true, new(transport.Stats)
	d := New(Config{Refusing: func() (transport.Code, bool) { return code, hear }, Stats: stats})
	heard := 0
	for range 2 * heardBurst {
		if !d.Refusing() {
			heard++
		}
	}
	if heard < heardBurst || heard > heardBurst+heardRate || stats.Dropped(transport.DropFull) != uint64(2*heardBurst-heard) {
		t.Errorf("%d of %d are heard, and %d are counted", heard, 2*heardBurst, stats.Dropped(transport.DropFull))
	}
	code, hear = transport.CodeBusy, false
	if !d.Refusing() || stats.Dropped(transport.DropOverload) != 1 {
		t.Error("an overloaded server hears somebody")
	}
	if code = 0; d.Refusing() {
		t.Error("a server that takes in everybody refuses somebody")
	}
}

// The players have places of their own, and whoever comes when they are taken is told so.
func TestPlacesOfPlayers(t *testing.T) {
	d := New(Config{MaxConns: 2})
	come := func() *transport.Refusal {
		st := d.Begin(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, true)
		defer d.Leave(st)
		return d.Meet(st, func() {})
	}
	d.Admit()
	if r := come(); r != nil {
		t.Error("where a place is free:", r)
	}
	d.Admit()
	if r := come(); r == nil || r.Code != transport.CodeFull || d.cfg.Stats.Dropped(transport.DropFull) != 1 {
		t.Error("where no place is free:", r)
	}
	d.SetMaxConns(3)
	if r := come(); r != nil {
		t.Error("where there are more places now:", r)
	}
	d.SetMaxConns(2)
	d.Left()
	if r := come(); r != nil {
		t.Error("where somebody has left:", r)
	}
	st := d.Begin(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, true)
	d.Leave(st)
	if r := d.Meet(st, func() {}); r != ErrBusy {
		t.Error("who has left is met:", r)
	}
}

// A site is the same whatever its connections come by.
func TestCarriersShareASite(t *testing.T) {
	d, ip := New(Config{}), net.IPv4(10, 0, 0, 1)
	for n := range MaxPerSite {
		var at net.Addr = &net.UDPAddr{IP: ip, Port: n}
		if n%2 == 0 {
			at = &net.TCPAddr{IP: ip, Port: n}
		}
		if d.Begin(at, true) == nil {
			t.Fatal("no place for", at)
		}
	}
	if d.Begin(&net.TCPAddr{IP: ip}, true) != nil || d.Begin(&net.UDPAddr{IP: ip}, true) != nil {
		t.Error("by another carrier a site has more places")
	}
}
