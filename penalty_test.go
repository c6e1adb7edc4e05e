package netloop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/transport"
)

// flooded is a room of tight limits whose clients come from addresses, in virtual time.
type flooded struct {
	*bare
	clock *clock.Virtual
	ran   map[ClientID]int
}

func newFlooded(t *testing.T, open func(*Room)) *flooded {
	f := &flooded{clock: clock.NewVirtual(), ran: map[ClientID]int{}}
	limits := RPCLimits{PerSecond: 10, Burst: 20, KickAfter: 30, Share: -1, ClientShare: -1}
	f.bare = newBareAs(t, Config{RPC: limits}, func(r *Room) {
		bareWords.Handle(r, func(_ *Tick, c *Client, _ word) error { f.ran[c.ID()]++; return nil })
		if open != nil {
			open(r)
		}
	})
	f.s.clock = f.clock
	f.step()
	return f
}

// wait lets game time and the server's clock pass.
func (f *flooded) wait(d time.Duration) {
	f.clock.Set(f.clock.Now() + d)
	f.tick += uint64(d * 60 / time.Second)
}

// enter lets a client in from an address, or says why not.
func (f *flooded) enter(token, addr string) (*transport.Session, error) {
	hello := bareSchema.hello()
	hello.Token = token
	adm, err := f.s.admit(context.Background(), hello, addr)
	if err != nil {
		return nil, err
	}
	s := transport.NewSession(adm.Session)
	adm.Joined(s)
	f.step()
	return s, nil
}

// flood sends n messages and returns how many ran.
func (f *flooded) flood(s *transport.Session, n int) int {
	was := f.ran[ClientID(s.ID())]
	for range n {
		f.push(s, transport.Arrival{Kind: transport.MessageArrived, Decoded: &word{}, Message: transport.Message{Method: bareWords.m.rq.ID}})
	}
	f.step()
	return f.ran[ClientID(s.ID())] - was
}

// gone ends a session.
func (f *flooded) gone(s *transport.Session) {
	s.End(transport.Closed{Code: CodeLeft})
	f.step()
}

func (f *flooded) wantRefused(token, addr string) {
	f.t.Helper()
	var r *transport.Refusal
	if _, err := f.enter(token, addr); !errors.As(err, &r) || r.Code != CodeFlood {
		f.t.Errorf("%q from %s is refused with %v", token, addr, err)
	}
}

func (f *flooded) mustEnter(token, addr string) *transport.Session {
	f.t.Helper()
	s, err := f.enter(token, addr)
	if err != nil {
		f.t.Fatalf("%q from %s: %v", token, addr, err)
	}
	return s
}

// subjects lets tokens name players.
func subjects(r *Room) {
	r.OnAdmit(func(_ context.Context, j *Join) error { j.Subject = j.Token; return nil })
}

func TestAFloodersBucketOutlivesItsConnection(t *testing.T) {
	for _, c := range []struct {
		open                   func(*Room)
		token, addr, otherAddr string
	}{
		{nil, "", "10.1.2.3:1000", "10.1.2.3:1001"},
		{nil, "", "[2001:db8:1:200::1]:1000", "[2001:db8:1:2ff:5::1]:1000"},
		{nil, "", "[::ffff:10.1.2.3]:1000", "10.1.2.3:1001"},
		{subjects, "ann", "10.1.2.3:1000", "10.9.9.9:1000"},
	} {
		f := newFlooded(t, c.open)
		s := f.mustEnter(c.token, c.addr)
		if n := f.flood(s, 60); n != 40 {
			t.Errorf("%s: %d of twice the burst ran", c.addr, n)
		}
		f.gone(s)
		if n := f.flood(f.mustEnter(c.token, c.otherAddr), 60); n > 1 {
			t.Errorf("%s: when it came again %d ran", c.addr, n)
		}
	}
}

func TestAnotherAddressHasItsOwnBucket(t *testing.T) {
	for addr, other := range map[string]string{
		"10.1.2.3:1000": "10.1.2.4:1000", "[2001:db8:1:200::1]:1000": "[2001:db8:1:300::1]:1000", "memory:1": "memory:2",
	} {
		f := newFlooded(t, nil)
		s := f.mustEnter("", addr)
		f.flood(s, 60)
		f.gone(s)
		if n := f.flood(f.mustEnter("", other), 60); n != 40 {
			t.Errorf("%s: after a flood of %s %d ran", other, addr, n)
		}
	}
}

func TestAKickedFlooderIsTurnedAwayForAWhile(t *testing.T) {
	f := newFlooded(t, nil)
	const addr = "10.1.2.3:1000"
	s, neighbour := f.mustEnter("", addr), f.mustEnter("", "10.1.2.3:2000")
	f.flood(s, 100)
	f.wantRefused("", "10.1.2.3:1001") // While its connection still lingers.
	if cause, closing := s.Cause(); !closing || cause.Code != CodeFlood {
		t.Errorf("the flooder was told %v", cause)
	}
	f.gone(s)
	f.wantRefused("", addr)
	if n := f.flood(neighbour, 30); n != 30 {
		t.Errorf("of a neighbour who was there already %d messages ran", n)
	}
	if _, closing := neighbour.Cause(); closing {
		t.Error("the neighbour was kicked")
	}
	f.mustEnter("", "10.1.2.4:1000")
	if seats := f.s.room.seats.Load(); seats != 2 {
		t.Errorf("%d seats are taken, want 2", seats)
	}
	f.wait(floodPenalty - 100*time.Millisecond)
	f.wantRefused("", addr)
	f.wait(200 * time.Millisecond)
	f.mustEnter("", addr)
	if line := `netloop_queue_drops_total{queue="admission",reason="flood"} 3`; !f.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

// With subjects a flooder is on its own, wherever it comes from, and with all connections.
func TestAKickedPlayerIsTurnedAwayAlone(t *testing.T) {
	f := newFlooded(t, subjects)
	const home = "10.1.2.3:1000"
	s, second, other := f.mustEnter("ann", home), f.mustEnter("ann", "10.5.5.5:1"), f.mustEnter("bob", home)
	f.flood(s, 100)
	f.wantRefused("ann", "10.7.7.7:1")
	f.mustEnter("cleo", home)
	if _, closing := second.Cause(); !closing {
		t.Error("the flooder's second connection stays")
	}
	if _, closing := other.Cause(); closing {
		t.Error("somebody else was kicked")
	}
}

// Whoever the game throws out with CodeFlood, or fills its inbox, is turned away too.
func TestEveryEndByFloodIsAPenalty(t *testing.T) {
	f := newFlooded(t, nil)
	s := f.mustEnter("", "10.1.2.3:1000")
	s.Shutdown(CodeFlood, "too many messages at once")
	f.gone(s)
	f.wantRefused("", "10.1.2.3:1000")
	s = f.mustEnter("", "10.1.2.4:1000")
	s.End(transport.Closed{Code: CodeFlood, Remote: true}) // Only the server says so.
	f.step()
	f.mustEnter("", "10.1.2.4:1000")
}

func TestADryRunTurnsNobodyAway(t *testing.T) {
	f := newFlooded(t, nil)
	f.s.cfg.RPC.Dry = true
	s := f.mustEnter("", "10.1.2.3:1000")
	f.flood(s, 100)
	f.mustEnter("", "10.1.2.3:1000")
}

func TestPenaltiesAreBounded(t *testing.T) {
	var p penalties
	for n := range maxPenalties + 10 {
		p.add(fmt.Sprint(n), 0)
		p.add(fmt.Sprint(n), 0)
	}
	if len(p.until) != maxPenalties || len(p.order) != maxPenalties || p.dropped() != 10 {
		t.Errorf("%d and %d penalties, %d dropped", len(p.until), len(p.order), p.dropped())
	}
	if p.left("9", 0) != 0 || p.left("10", 0) != floodPenalty {
		t.Error("not the oldest was dropped")
	}
	p.add("10", floodPenalty/2) // Renewed: what it was before does not count.
	p.add("x", floodPenalty)
	if len(p.until) != 2 || p.left("10", floodPenalty) != floodPenalty/2 || p.dropped() != 11 {
		t.Errorf("%d penalties, %v left, %d dropped", len(p.until), p.left("10", floodPenalty), p.dropped())
	}
	p.add("", 0)
	if p.left("", 0) != 0 {
		t.Error("nobody has a penalty")
	}
}

// Calls that reach no handler are answered up to a number; the next tick begins anew.
func TestRefusalsAreBoundedPerTickAndClient(t *testing.T) {
	b := newBare(t, func(r *Room) {
		bareWords.Handle(r, func(*Tick, *Client, word) error { return nil })
	})
	s, other := b.join(), b.join()
	b.step()
	ask := func(s *transport.Session, n int) {
		for range n {
			b.push(s, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: 60_000, Call: 7}})
		}
	}
	for range 2 {
		ask(s, 1000)
		ask(other, maxRefusals)
		b.step()
		if n := len(answers(t, s)); n != maxRefusals {
			t.Errorf("%d of 1 000 calls of no method were answered, want %d", n, maxRefusals)
		}
		if n := len(answers(t, other)); n != maxRefusals {
			t.Errorf("of another client %d, want all %d", n, maxRefusals)
		}
	}
	b.s.room.report()
	for _, line := range []string{
		`netloop_queue_drops_total{queue="rpc",reason="unanswered"} 1872`,
		`netloop_rpcs_total{method="(unknown)",outcome="unknown_method",stage="unset"} 2128`,
	} {
		if !b.scraped(line) {
			t.Errorf("the scrape lacks %s", line)
		}
	}
}
