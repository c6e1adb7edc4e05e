package room_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// flooded is a room of tight limits with clients of several addresses, in virtual time.
type flooded struct {
	*bare
	clock *clock.Virtual
	ran   map[netloop.ClientID]int
}

func newFlooded(t *testing.T, open func(*netloop.Room)) *flooded {
	f := &flooded{clock: clock.NewVirtual(), ran: map[netloop.ClientID]int{}}
	limits := netloop.RPCLimits{PerSecond: 10, Burst: 20, KickAfter: 30, Share: -1, ClientShare: -1}
	f.bare = newBareAs(t, netloop.Config{RPC: limits, Room: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow}}, func(r *netloop.Room) {
		bareWords.Handle(r, func(_ *netloop.Tick, c *netloop.Client, _ word) error { f.ran[c.ID()]++; return nil })
		if open != nil {
			open(r)
		}
	})
	f.server.UseClock(f.clock)
	f.step()
	return f
}

// wait advances game time and the server's clock.
func (f *flooded) wait(d time.Duration) {
	f.clock.Set(f.clock.Now() + d)
	f.tick += uint64(d * 60 / time.Second)
}

// enter admits a client from an address, or returns the error.
func (f *flooded) enter(token, addr string) (*testConn, error) {
	hello := hello(bareSchema)
	hello.Token = token
	adm, err := f.server.Handler.Admit(context.Background(), hello, addr)
	if err != nil {
		return nil, err
	}
	s := newTestConn(adm)
	f.step()
	return s, nil
}

// flood sends n messages and returns how many ran.
func (f *flooded) flood(s *testConn, n int) int {
	was := f.ran[netloop.ClientID(s.ID())]
	for range n {
		f.push(s, transport.Arrival{Kind: transport.MessageArrived, Decoded: &word{}, Message: transport.Message{Method: idOf(bareWords)}})
	}
	f.step()
	return f.ran[netloop.ClientID(s.ID())] - was
}

// gone ends a session.
func (f *flooded) gone(s *testConn) {
	s.End(transport.Closed{Code: netloop.CodeLeft})
	f.step()
}

func (f *flooded) wantRefused(token, addr string) {
	f.t.Helper()
	var r *transport.Refusal
	if _, err := f.enter(token, addr); !errors.As(err, &r) || r.Code != netloop.CodeFlood {
		f.t.Errorf("%q from %s is refused with %v", token, addr, err)
	}
}

func (f *flooded) mustEnter(token, addr string) *testConn {
	f.t.Helper()
	s, err := f.enter(token, addr)
	if err != nil {
		f.t.Fatalf("%q from %s: %v", token, addr, err)
	}
	return s
}

// subjects makes tokens name players.
func subjects(r *netloop.Room) {
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
}

func TestAFloodersBucketOutlivesItsConnection(t *testing.T) {
	for _, c := range []struct {
		open                   func(*netloop.Room)
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

// Without names a flooder cannot be distinguished from its neighbours: all joins from its address
// wait for their turn, and succeed.
func TestJoinsFromAFloodersAddressWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlooded(t, nil)
		const addr = "10.1.2.3:1000"
		s, neighbour := f.mustEnter("", addr), f.mustEnter("", "10.1.2.3:2000")
		f.flood(s, 100)
		if cause, closing := s.Cause(); !closing || cause.Code != netloop.CodeFlood {
			t.Errorf("the flooder was told %v", cause)
		}
		f.gone(s)
		if n := f.flood(neighbour, 30); n != 30 {
			t.Errorf("of a neighbour who was there already %d messages ran", n)
		}
		begin := time.Now()
		f.mustEnter("", "10.1.2.4:1000")
		if wait := time.Since(begin); wait != 0 {
			t.Errorf("another address waits for %v", wait)
		}
		f.mustEnter("", addr)
		if wait := time.Since(begin); wait != room.FloodWait {
			t.Errorf("the flooder's waits for %v", wait)
		}
		f.wait(room.FloodPenalty)
		f.mustEnter("", addr)
		if wait := time.Since(begin); wait != room.FloodWait {
			t.Errorf("after the penalty it waits until %v", wait)
		}
		if seats := f.room.Admission.Seats(); seats != 4 {
			t.Errorf("%d seats are taken, want 4", seats)
		}
	})
}

// A waiting client holds no seat, may find the room full in the end, and may give up.
func TestAWaitingClientHoldsNoSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlooded(t, nil)
		f.room.SetMaxClients(1)
		r := f.room
		r.Penalties().Add("address 10.1.2.3/32", f.clock.Now())
		failed := make(chan error, 1)
		approved := 0
		ctx := transport.WithApproved(context.Background(), func() { approved++ })
		go func() {
			_, err := f.server.Handler.Admit(ctx, hello(bareSchema), "10.1.2.3:1")
			failed <- err
		}()
		synctest.Wait()
		if approved != 1 {
			t.Errorf("the transport is told %d times that who waits is no stranger", approved)
		}
		if seats := r.Admission.Seats(); seats != 0 {
			t.Errorf("who waits has %d seats", seats)
		}
		f.mustEnter("", "10.1.2.4:1")
		var refused *transport.Refusal
		if err := <-failed; !errors.As(err, &refused) || refused.Code != netloop.CodeFull {
			t.Errorf("in a room that has become full: %v", err)
		}
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		r.SetMaxClients(2)
		if _, err := f.server.Handler.Admit(gone, hello(bareSchema), "10.1.2.3:1"); err == nil {
			t.Error("who has given up was let in")
		}
		if seats := r.Admission.Seats(); seats != 1 {
			t.Errorf("%d seats are taken, want 1", seats)
		}
	})
}

func TestTurnsAreSpacedAndBounded(t *testing.T) {
	var p room.Penalties
	h, ann := rpcqueue.Holder{Key: "here"}, rpcqueue.Holder{Key: "ann", Shared: true}
	p.Add(h.Key, 0)
	p.Add(ann.Key, 0)
	in := 0
	for want := room.FloodWait; ; want += room.FloodSpacing {
		wait, ok := p.Turn(h, 0)
		if !ok {
			break
		}
		if in++; wait != want {
			t.Fatalf("the %d. waits for %v, want %v", in, wait, want)
		}
	}
	if want := int((room.MaxFloodWait-room.FloodWait)/room.FloodSpacing) + 1; in != want {
		t.Errorf("%d wait, want %d", in, want)
	}
	if wait, ok := p.Turn(h, time.Second); !ok || wait != room.MaxFloodWait-time.Second+room.FloodSpacing {
		t.Errorf("a second later one waits for %v, %v", wait, ok)
	}
	if _, ok := p.Turn(ann, room.FloodPenalty-1); ok {
		t.Error("a player is let in too early")
	}
	for _, h := range []rpcqueue.Holder{h, ann} {
		if wait, ok := p.Turn(h, room.FloodPenalty); wait != 0 || !ok {
			t.Errorf("after the penalty %s waits for %v, %v", h.Key, wait, ok)
		}
	}
}

// With subjects only the flooder has a penalty, from each address, and on all connections.
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

// A client that the game closes with CodeFlood, or that fills its inbox, has a penalty too.
func TestEveryEndByFloodIsAPenalty(t *testing.T) {
	f := newFlooded(t, subjects)
	s := f.mustEnter("ann", "10.1.2.3:1000")
	s.Shutdown(netloop.CodeFlood, "too many messages at once")
	f.gone(s)
	f.wantRefused("ann", "10.1.2.3:1000")
	s = f.mustEnter("bob", "10.1.2.3:1000")
	s.End(transport.Closed{Code: netloop.CodeFlood, Remote: true}) // Only the server may use it.
	f.step()
	f.mustEnter("bob", "10.1.2.3:1000")
	if line := `netloop_queue_drops_total{queue="admission",reason="flood"} 1`; !f.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

func TestADryRunRefusesNoClient(t *testing.T) {
	f := newFlooded(t, subjects)
	f.room.SetDry()
	s := f.mustEnter("ann", "10.1.2.3:1000")
	f.flood(s, 100)
	f.mustEnter("ann", "10.1.2.3:1000")
}

func TestPenaltiesAreBounded(t *testing.T) {
	var p room.Penalties
	for n := range room.MaxPenalties + 10 {
		p.Add(fmt.Sprint(n), 0)
		p.Add(fmt.Sprint(n), 0)
	}
	if byHolder, order := p.Held(); byHolder != room.MaxPenalties || order != room.MaxPenalties || p.Dropped() != 10 {
		t.Errorf("%d and %d penalties, %d dropped", byHolder, order, p.Dropped())
	}
	left := func(name string, now time.Duration) bool {
		_, ok := p.Turn(rpcqueue.Holder{Key: name, Shared: true}, now)
		return !ok
	}
	if left("9", 0) || !left("10", 0) {
		t.Error("not the oldest was dropped")
	}
	p.Add("4000", room.FloodPenalty/2) // Renewed: the earlier penalty has no effect.
	p.Add("x", room.FloodPenalty)
	if byHolder, _ := p.Held(); byHolder != 2 || !left("4000", room.FloodPenalty) || p.Dropped() != 11 {
		t.Errorf("%d penalties, %d dropped", byHolder, p.Dropped())
	}
	p.Add("", 0)
	if left("", 0) {
		t.Error("nobody has a penalty")
	}
}

// Calls that reach no handler are answered up to a limit; each tick starts anew.
func TestRefusalsAreBoundedPerTickAndClient(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { return nil })
	})
	s, other := b.join(), b.join()
	b.step()
	ask := func(s *testConn, n int) {
		for range n {
			b.push(s, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: 60_000, Call: 7}})
		}
	}
	for range 2 {
		ask(s, 1000)
		ask(other, room.MaxRefusals)
		b.step()
		if n := len(answers(t, s)); n != room.MaxRefusals {
			t.Errorf("%d of 1 000 calls of no method were answered, want %d", n, room.MaxRefusals)
		}
		if n := len(answers(t, other)); n != room.MaxRefusals {
			t.Errorf("of another client %d, want all %d", n, room.MaxRefusals)
		}
	}
	b.room.Report()
	for _, line := range []string{
		`netloop_queue_drops_total{queue="rpc",reason="unanswered"} 1872`,
		`netloop_rpcs_total{method="(unknown)",outcome="unknown_method",stage="unset"} 2128`,
	} {
		if !b.scraped(line) {
			t.Errorf("the scrape lacks %s", line)
		}
	}
}
