package memnet

import (
	"bytes"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// TestCloseTellsWhy: reliable data first, then the code and the text, to the other end.
func TestCloseTellsWhy(t *testing.T) {
	for name, loss := range map[string]float64{"a good link": 0, "a bad link": 0.3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 5)
			p := w.join(Link{Delay: 10 * ms, Loss: loss})
			reliable(p.server, []byte("last words"))
			p.server.Close(transport.CodeKicked, "no cheating")
			w.run(3 * time.Second)
			as := p.arrivals()
			if len(as) != 2 || string(as[0].Message.Payload) != "last words" {
				t.Fatal(as)
			}
			gone := closed(t, as)
			if gone == nil || *gone.Closed != (transport.Closed{Code: transport.CodeKicked, Text: "no cheating", Remote: true}) {
				t.Fatal(gone)
			}
			gone = closed(t, w.arrivals())
			if gone == nil || gone.Closed.Remote || gone.Closed.Code != transport.CodeKicked {
				t.Fatal(gone)
			}
			if w.net.Take(); p.Open() || len(w.net.conns) != 0 {
				t.Fatal("the connection is still there")
			}
		})
	}
}

func TestLeaverIsGoneWithItsCode(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	at := w.net.Now()
	p.session.Close(transport.CodeLeft, "dinner")
	w.run(time.Second)
	gone := closed(t, w.arrivals())
	if gone == nil || *gone.Closed != (transport.Closed{Code: transport.CodeLeft, Text: "dinner", Remote: true}) || gone.At != at+10*ms {
		t.Fatal(gone)
	}
	if closed(t, p.arrivals()) == nil {
		t.Fatal("the leaver itself was not told")
	}
}

func TestStalledClientIsLeftAloneUntilItReads(t *testing.T) {
	w := newWorld(t, 1)
	p, other := w.join(Link{Delay: 10 * ms}), w.join(Link{Delay: 10 * ms})
	p.arrivals()
	p.Stall(true)
	for i := range 300 {
		now := w.net.Now()
		if ok := snapshot(p.server, now, []byte("state")); ok != (i == 0) {
			t.Fatal("tick", i, "slot free:", ok)
		}
		if !snapshot(other.server, now, []byte("state")) {
			t.Fatal("tick", i, "a healthy client has no slot")
		}
		p.session.Flush(now)
		w.run(time.Second / 60)
	}
	if as := p.arrivals(); len(as) != 0 {
		t.Fatal("it read", as)
	}
	if n := len(other.arrivals()); n < 298 {
		t.Fatal("the healthy client got", n, "of 300")
	}
	// It continues to send, and the connection is kept open.
	if last := p.server.LinkFacts().LastArrival; w.net.Now()-last > 50*ms {
		t.Fatal("last heard at", last)
	}
	w.run(3 * IdleTimeout)
	p.Stall(false)
	w.run(100 * ms)
	if as := p.arrivals(); len(as) != 1 || as[0].Kind != transport.State || p.server.Slot() == nil {
		t.Fatal(as)
	}
}

func TestStalledClientsReliableQueueOverflows(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	p.Stall(true)
	sent := 0
	for reliable(p.server, make([]byte, 10_000)) {
		p.server.Flush(w.net.Now())
		w.run(time.Second / 60)
		if sent++; sent > 1000 {
			t.Fatal("no bound")
		}
	}
	w.run(3 * time.Second)
	if gone := closed(t, w.arrivals()); gone == nil || gone.Closed.Code != transport.CodeSlow || gone.Closed.Remote {
		t.Fatal(gone)
	}
	if gone := closed(t, p.arrivals()); gone == nil || gone.Closed.Code != transport.CodeSlow || !gone.Closed.Remote {
		t.Fatal(gone)
	}
}

func TestStalledClientCanBeClosed(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	p.Stall(true)
	reliable(p.server, []byte("unread"))
	p.server.Close(transport.CodeKicked, "asleep")
	w.run(CloseLinger + 100*ms)
	if gone := closed(t, w.arrivals()); gone == nil || gone.Closed.Code != transport.CodeKicked {
		t.Fatal(gone)
	}
	if gone := closed(t, p.arrivals()); gone == nil || gone.Closed.Code != transport.CodeKicked {
		t.Fatal(gone)
	}
}

func TestStalledClientCatchesUpWithItsStream(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	p.Stall(true)
	for i := range 20 {
		reliable(p.server, bytes.Repeat([]byte{byte(i)}, 1000))
		p.server.Flush(w.net.Now())
		w.run(100 * ms)
	}
	p.Stall(false)
	w.run(time.Second)
	as := p.arrivals()
	if len(as) != 20 {
		t.Fatal(len(as))
	}
	for i, a := range as {
		if a.Message.Payload[0] != byte(i) {
			t.Fatal("message", i)
		}
	}
}

func TestVanishedClientIsNoticedAfterTheIdleTimeout(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.arrivals()
	at := w.net.Now()
	p.Drop()
	p.Heal() // It has no effect.
	for range 11 * 60 {
		snapshot(p.server, w.net.Now(), []byte("state"))
		reliable(p.server, []byte("unheard"))
		p.server.Flush(w.net.Now())
		p.session.Flush(w.net.Now())
		w.run(time.Second / 60)
	}
	as := w.arrivals()
	gone := closed(t, as)
	if gone == nil || gone.Closed.Code != transport.CodeLost || gone.Closed.Remote || gone.At != at+IdleTimeout || len(as) != 1 {
		t.Fatal(as)
	}
	if n := len(p.arrivals()); n != 1 {
		t.Fatal("the vanished client saw", n, "arrivals instead of its own end")
	}
	w.run(time.Second)
	if len(w.net.conns) != 0 || w.net.events.Len() != 0 {
		t.Fatal(len(w.net.conns), "connections and", w.net.events.Len(), "events are left")
	}
	if w.net.conns[:1][0] != nil {
		t.Fatal("the network holds an ended connection")
	}
}

func TestAHoleDropsAllPacketsUntilItHeals(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.arrivals()
	for i := range 600 {
		switch i {
		case 0:
			p.Cut()
		case 300:
			if n := len(w.arrivals()) + len(p.arrivals()); n != 0 {
				t.Fatal(n, "arrivals from within the hole")
			}
			p.Heal()
		}
		snapshot(p.server, w.net.Now(), []byte("state"))
		p.session.Send(transport.Message{Method: 1, Payload: []byte{1}})
		p.session.Flush(w.net.Now())
		w.run(time.Second / 60)
	}
	if up, down := len(w.arrivals()), len(p.arrivals()); up < 298 || down < 298 || up > 300 || down > 300 {
		t.Fatal(up, down)
	}
	w.run(IdleTimeout) // The old timeout has no effect.
	if closed(t, w.arrivals()) != nil || !p.Open() {
		t.Fatal("the connection ended after the hole had healed")
	}
}

// Two holes that are together longer than IdleTimeout do not end the connection.
func TestEachHoleHasItsOwnTimeout(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.arrivals()
	for range 2 {
		p.Cut()
		w.run(IdleTimeout * 3 / 4)
		p.Heal()
	}
	if closed(t, w.arrivals()) != nil || !p.Open() {
		t.Fatal("the connection ended within the second hole")
	}
}

func TestHoleOfOneDirection(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.arrivals()
	at := w.net.Now()
	p.CutDown()
	for range 60 {
		snapshot(p.server, w.net.Now(), []byte("state"))
		p.session.Send(transport.Message{Method: 1, Payload: []byte{1}})
		p.session.Flush(w.net.Now())
		w.run(time.Second / 60)
	}
	if up, down := len(w.arrivals()), len(p.arrivals()); up < 59 || down != 0 {
		t.Fatal(up, down)
	}
	// The client receives no packets and ends without a word; so does the server, later.
	w.run(IdleTimeout)
	if gone := closed(t, p.arrivals()); gone == nil || gone.At != at+IdleTimeout || closed(t, w.arrivals()) != nil {
		t.Fatal(gone)
	}
	p.Heal()
	w.run(IdleTimeout)
	if gone := closed(t, w.arrivals()); gone == nil || gone.At != at+2*IdleTimeout || gone.Closed.Code != transport.CodeLost {
		t.Fatal(gone)
	}
}

func TestCloseInAHoleArrivesAfterIt(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	w.arrivals()
	p.Cut()
	p.session.Close(transport.CodeLeft, "bye")
	w.run(3 * time.Second)
	if closed(t, p.arrivals()) == nil || closed(t, w.arrivals()) != nil {
		t.Fatal("the leaver lingers, or the server knows already")
	}
	p.Heal()
	w.run(time.Second)
	if gone := closed(t, w.arrivals()); gone == nil || gone.Closed.Code != transport.CodeLeft || !gone.Closed.Remote {
		t.Fatal(gone)
	}
}

func TestChangedLinkActsFromThenOn(t *testing.T) {
	w := newWorld(t, 1)
	p := w.join(Link{Delay: 10 * ms})
	at := w.net.Now()
	snapshot(p.server, at, []byte("before"))
	w.net.Take()
	p.SetLink(Link{Delay: 50 * ms})
	snapshot(p.server, at, []byte("after"))
	w.run(time.Second)
	as := p.arrivals()
	if len(as) != 2 || as[0].At != at+10*ms || as[1].At != at+50*ms {
		t.Fatal(as)
	}
}
