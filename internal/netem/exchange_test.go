package netem

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func parse(t *testing.T, text string) Spec {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// peer is the address of the n-th client, 200 on each host.
func peer(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n / 200 / 256), byte(n / 200)}), uint16(5000+n%200))
}

// traffic sends so many datagrams each way over an exchange, of several clients, and returns a
// transcript of their arrivals.
func traffic(t *testing.T, spec string, seed uint64, client bool, n int) (transcript string, st *Stats) {
	t.Helper()
	st = new(Stats)
	x := NewExchange(Config{Spec: parse(t, spec), Seed: seed, Client: client, Stats: st})
	rng := rand.New(rand.NewPCG(seed, 99))
	var log bytes.Buffer
	var copies, damaged uint64
	look := func(way string, now time.Duration, p Packet, ok bool) bool {
		if !ok {
			return false
		}
		// The number is in the datagram twice, and one bit at most is wrong.
		wrong := min(difference(p.Data, payload(binary.BigEndian.Uint32(p.Data))), difference(p.Data, payload(binary.BigEndian.Uint32(p.Data[4:]))))
		if wrong > 1 {
			t.Errorf("%d bits are wrong", wrong)
		}
		copies++
		damaged += uint64(wrong)
		fmt.Fprintf(&log, "%v %s %v %x\n", now, way, p.Addr, p.Data[:8])
		return true
	}
	now := time.Duration(0)
	for i := range n {
		now += time.Duration(rng.IntN(3)) * ms
		for p, ok := x.Receive(now); look("in", now, p, ok); p, ok = x.Receive(now) {
		}
		for p, ok := x.Send(now); look("out", now, p, ok); p, ok = x.Send(now) {
		}
		who := peer(rng.IntN(5))
		if client {
			x.Out(now, who, payload(uint32(2*i+1)))
			x.In(now, who, payload(uint32(2*i+2)))
		} else {
			x.In(now, who, payload(uint32(2*i+1)))
			x.Out(now, x.flows.byPeer[who].shown, payload(uint32(2*i+2)))
		}
	}
	for range 2 {
		now += time.Minute
		for p, ok := x.Receive(now); look("in", now, p, ok); p, ok = x.Receive(now) {
		}
		for p, ok := x.Send(now); look("out", now, p, ok); p, ok = x.Send(now) {
		}
	}
	if x.in.bytes != 0 || x.out.bytes != 0 || x.in.Len() != 0 || x.out.Len() != 0 {
		t.Error("datagrams remain:", x.in.bytes, x.out.bytes)
	}
	for f := range x.flows.all() {
		if f.waiting != [directions]int{} {
			t.Error("a flow still counts waiting bytes", f.waiting)
		}
	}
	var want uint64
	for d := range Direction(directions) {
		var offered uint64
		for f := Passed; f < Duplicated; f++ {
			offered += st.Get(d, f)
		}
		if offered != uint64(n) {
			t.Errorf("%v: %d of %d datagrams have a fate: %v", d, offered, n, st)
		}
		want += st.Get(d, Passed) + st.Get(d, Duplicated)
	}
	if copies != want {
		t.Errorf("%d copies arrived, want %d: %v", copies, want, st)
	}
	if c := st.Get(Up, Corrupted) + st.Get(Down, Corrupted); damaged < c || damaged > 2*c {
		t.Errorf("%d copies are damaged, of %d datagrams", damaged, c)
	}
	return log.String(), st
}

// payload makes a datagram from its number, which determines all bytes.
func payload(n uint32) []byte {
	b := make([]byte, 100)
	for i := range b {
		b[i] = byte(n * uint32(i+1))
	}
	binary.BigEndian.PutUint32(b, n)
	binary.BigEndian.PutUint32(b[4:], n)
	return b
}

// difference counts the bits in which two datagrams differ.
func difference(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

const everything = "rtt=100ms,jitter=20ms,loss=5%,dup=3%,reorder=2%,corrupt=4%,rate=200kbit/s,buffer=50ms,hole=1s@2s,rebind=700ms"

// TestEveryDatagramIsCountedOnce checks that each datagram is counted once as passed or lost, that
// passed datagrams arrive in as many copies as were counted, and that no others arrive.
func TestEveryDatagramIsCountedOnce(t *testing.T) {
	for _, client := range []bool{false, true} {
		_, st := traffic(t, everything, 1, client, 10_000)
		for d := range Direction(directions) {
			for f, most := range map[Fate]uint64{Passed: 10_000, Lost: 600, Queue: 5_000, Blackout: 1_500, Duplicated: 400, Reordered: 300, Corrupted: 500} {
				if n := st.Get(d, f); n == 0 || n > most {
					t.Errorf("%v: %d %v", d, n, f)
				}
			}
		}
		if st.Rebinds.Load() == 0 {
			t.Error("no rebinds")
		}
	}
}

// TestTheSeedDeterminesTheRun checks that the same seed gives the same run, and another seed
// another run.
func TestTheSeedDeterminesTheRun(t *testing.T) {
	a, _ := traffic(t, everything, 7, false, 2000)
	b, _ := traffic(t, everything, 7, false, 2000)
	c, _ := traffic(t, everything, 8, false, 2000)
	if a != b || a == c {
		t.Error("same:", a == b, "other:", a != c)
	}
}

// TestTheZeroSpecIsAPerfectNetwork checks that the zero Spec passes all datagrams on at once and
// unchanged.
func TestTheZeroSpecIsAPerfectNetwork(t *testing.T) {
	x := NewExchange(Config{})
	for n := range uint32(100) {
		x.In(0, peer(0), payload(n))
		if p, ok := x.Receive(0); !ok || p.Addr != peer(0) || !bytes.Equal(p.Data, payload(n)) {
			t.Fatal("in", n, ok, p.Addr)
		}
		x.Out(0, peer(0), payload(n))
		if p, ok := x.Send(0); !ok || p.Addr != peer(0) || !bytes.Equal(p.Data, payload(n)) {
			t.Fatal("out", n, ok, p.Addr)
		}
	}
}

// TestUpIsTheDirectionToTheServer checks that a server receives, and a client sends, the
// datagrams of Up.
func TestUpIsTheDirectionToTheServer(t *testing.T) {
	for _, c := range []struct {
		client  bool
		spec    string
		in, out bool
	}{
		{false, "up.loss=100%", false, true},
		{false, "down.loss=100%", true, false},
		{true, "up.loss=100%", true, false},
		{true, "down.loss=100%", false, true},
	} {
		x := NewExchange(Config{Spec: parse(t, c.spec), Client: c.client})
		if c.client {
			x.Out(0, peer(0), payload(1)) // Else the server would be an unknown peer.
			x.Send(0)
		}
		x.In(0, peer(0), payload(1))
		x.Out(0, peer(0), payload(1))
		_, in := x.Receive(0)
		_, out := x.Send(0)
		if in != c.in || out != c.out {
			t.Errorf("client %v, %s: in %v, out %v", c.client, c.spec, in, out)
		}
	}
}

// TestAnyBitMayBeDamaged checks that each bit of a datagram is damaged at some time.
func TestAnyBitMayBeDamaged(t *testing.T) {
	x := NewExchange(Config{Spec: parse(t, "corrupt=100%")})
	damaged, sent := make([]byte, 20), make([]byte, 20)
	for range 10_000 {
		x.In(0, peer(0), sent)
		p, _ := x.Receive(0)
		for i, b := range p.Data {
			damaged[i] |= b
		}
	}
	if n := difference(sent, damaged); n != 8*len(sent) {
		t.Errorf("%d of %d bits are damaged: %08b", n, 8*len(sent), damaged)
	}
}

// TestClientsShareNoBottleneck checks that a flooding client delays and loses only its own
// datagrams.
func TestClientsShareNoBottleneck(t *testing.T) {
	x := NewExchange(Config{Spec: parse(t, "rate=100kbit/s,buffer=1s")})
	for range 1000 {
		x.In(0, peer(0), make([]byte, 1000))
	}
	x.In(0, peer(1), make([]byte, 1000))
	if p, ok := x.Receive(83 * ms); !ok {
		t.Error("no datagram arrived")
	} else if q, ok := x.Receive(83 * ms); !ok || p.Addr == q.Addr {
		t.Error("the second client waits for the first one")
	}
}

// TestAHoleIsCountedFromTheFirstDatagram checks the start of a hole for each client, and its end.
func TestAHoleIsCountedFromTheFirstDatagram(t *testing.T) {
	x := NewExchange(Config{Spec: parse(t, "up.hole=2s@1s")})
	for n, began := range []time.Duration{0, 700 * ms} {
		for i, want := range []bool{true, true, false, false, true, true} {
			at := began + []time.Duration{0, time.Second - 1, time.Second, 3*time.Second - 1, 3 * time.Second, time.Minute}[i]
			x.In(at, peer(n), payload(1))
			if _, ok := x.Receive(at); ok != want {
				t.Errorf("client %d, after %v: arrived %v", n, at-began, ok)
			}
			x.Out(at, peer(n), payload(1))
			if _, ok := x.Send(at); !ok {
				t.Errorf("client %d, after %v: lost in the other direction", n, at-began)
			}
		}
	}
}

// TestARebindShowsAnotherPort checks that a rebind uses another port of the same host. Datagrams to
// the old port are lost, those to the new one reach the client; no port is used twice.
func TestARebindShowsAnotherPort(t *testing.T) {
	const clients = 300
	st := new(Stats)
	x := NewExchange(Config{Spec: parse(t, "rebind=2s"), Stats: st})
	shown := func(at time.Duration, n int) netip.AddrPort {
		x.In(at, peer(n), payload(1))
		p, ok := x.Receive(at)
		if !ok || p.Addr.Addr() != peer(n).Addr() {
			t.Fatal("client", n, "is shown as", p.Addr, ok)
		}
		return p.Addr
	}
	reaches := func(at time.Duration, to netip.AddrPort) netip.AddrPort {
		x.Out(at, to, payload(1))
		p, _ := x.Send(at)
		return p.Addr
	}
	x.flows.port = peer(0).Port() - 1 // So that assigned ports collide with real ones.
	var old [clients]netip.AddrPort
	for n := range clients {
		if old[n] = shown(0, n); old[n] != peer(n) {
			t.Fatal("client", n, "is shown as", old[n], "at first")
		}
	}
	for turn := 1; turn <= 3; turn++ {
		at := time.Duration(turn) * 2 * time.Second
		taken := map[netip.AddrPort]bool{}
		for n := range clients {
			if got := shown(at-1, n); got != old[n] {
				t.Fatal("client", n, "is shown as", got, "before its time, not", old[n])
			}
		}
		for n := range clients {
			now := shown(at, n)
			if now == old[n] || taken[now] || x.flows.byPeer[now] != nil {
				t.Fatal("client", n, "is shown as", now, "after", old[n])
			}
			taken[now] = true
			if to := reaches(at, now); to != peer(n) {
				t.Fatal("a datagram to", now, "reaches", to)
			}
			if to := reaches(at, old[n]); to.IsValid() && !taken[old[n]] && to == peer(n) {
				t.Fatal("a datagram to the old address", old[n], "reaches", to)
			}
			old[n] = now
		}
	}
	if n := st.Rebinds.Load(); n != 3*clients {
		t.Error(n, "rebinds")
	}
	// A new client has a port that is assigned to another one.
	stranger := old[7]
	if got := shown(6*time.Second, 7); got != stranger {
		t.Fatal(got)
	}
	x.In(6*time.Second, stranger, payload(2))
	if p, ok := x.Receive(6 * time.Second); !ok || p.Addr == stranger || reaches(6*time.Second, p.Addr) != stranger {
		t.Error("a new client is shown as", p.Addr, ok)
	}
	if to := reaches(6*time.Second, stranger); to != peer(7) {
		t.Error("a datagram to the older client reaches", to)
	}
}

// TestARebindIsRequestedOncePerPeriod checks for one request in each period, on sent or received
// datagrams.
func TestARebindIsRequestedOncePerPeriod(t *testing.T) {
	x := NewExchange(Config{Spec: parse(t, "rebind=2s"), Client: true})
	var told []time.Duration
	for at := time.Duration(0); at < 9*time.Second; at += 500 * ms {
		x.Out(at, peer(0), payload(1))
		if x.Rebound() {
			told = append(told, at)
		}
		if x.Rebound() {
			t.Fatal("requested twice at", at)
		}
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second}
	if !slices.Equal(told, want) {
		t.Error("told at", told)
	}
}

// TestUnknownPeersDoNotReachAClient checks that, as behind a router, a client receives only from
// peers to which it has sent.
func TestUnknownPeersDoNotReachAClient(t *testing.T) {
	st := new(Stats)
	x := NewExchange(Config{Client: true, Stats: st})
	x.Out(0, peer(0), payload(1))
	x.In(0, peer(1), payload(1))
	if _, ok := x.Receive(0); ok || st.Get(Down, Unbound) != 1 || x.flows.recent.Len() != 1 {
		t.Error("a datagram of an unknown peer arrived")
	}
}

// TestAFloodIsBounded checks the bounds of waiting datagrams, for each client and for all of them.
func TestAFloodIsBounded(t *testing.T) {
	st := new(Stats)
	x := NewExchange(Config{Spec: parse(t, "rtt=10s,dup=50%"), Stats: st})
	b := make([]byte, maxPacket)
	for range 2 * maxFlowBytes / len(b) {
		x.In(0, peer(0), b)
	}
	if n := x.in.bytes; n > maxFlowBytes || n < maxFlowBytes-2*len(b) || st.Get(Up, Overflow) == 0 {
		t.Error("one client has", n, "bytes waiting")
	}
	for n := range 2 * maxBytes / maxFlowBytes {
		for range maxFlowBytes / len(b) {
			x.In(0, peer(n), b)
		}
	}
	if n := x.in.bytes; n > maxBytes || n < maxBytes-2*len(b) {
		t.Error("all of them have", n)
	}
	if x.out.bytes != 0 {
		t.Error("the other direction has", x.out.bytes)
	}
}

// TestFlowsAreBounded checks that beyond the limit the flow that was silent for longest is dropped,
// as is every flow that is silent for a minute.
func TestFlowsAreBounded(t *testing.T) {
	x := NewExchange(Config{})
	for n := range maxFlows {
		x.In(0, peer(n), nil)
	}
	x.In(1, peer(0), nil)
	for n := range 100 {
		x.In(1, peer(maxFlows+n), nil)
	}
	if n := x.flows.recent.Len(); n != maxFlows || len(x.flows.byPeer) != n || len(x.flows.byShown) != n {
		t.Error(n, "flows")
	}
	if x.flows.byPeer[peer(0)] == nil || x.flows.byPeer[peer(100)] != nil || x.flows.byPeer[peer(101)] == nil {
		t.Error("the wrong flows were dropped")
	}
	x.In(flowIdle+1, peer(5000), nil)
	// Only flows opened after the first instant remain.
	if n := x.flows.recent.Len(); n != 102 || len(x.flows.byPeer) != n || len(x.flows.byShown) != n {
		t.Error(n, "flows after a minute")
	}
}

// TestTheSpecMayChange checks a change of the network for existing flows.
func TestTheSpecMayChange(t *testing.T) {
	x := NewExchange(Config{})
	x.In(0, peer(0), payload(1))
	x.Set(parse(t, "rtt=100ms,down.hole=1h@0s"))
	x.In(ms, peer(0), payload(2))
	if _, ok := x.Receive(ms); !ok {
		t.Error("a datagram in flight was lost")
	}
	if at, ok := x.in.Next(); !ok || at != 51*ms {
		t.Error("the next arrives at", at, ok)
	}
	x.Out(ms, peer(0), payload(3))
	if _, ok := x.out.Next(); ok {
		t.Error("a datagram passed the hole")
	}
}

// TestStatsListNonzeroCounts checks the line of nonzero counts.
func TestStatsListNonzeroCounts(t *testing.T) {
	st := new(Stats)
	st.add(Up, Passed)
	st.add(Up, Passed)
	st.add(Up, Corrupted)
	st.add(Down, Lost)
	st.Rebinds.Add(3)
	if got, want := st.String(), "up: 2 passed, 1 corrupted; down: 0 passed, 1 lost; 3 rebinds"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n := 0
	st.Each(func(d Direction, f Fate, _ uint64) {
		n++
		if d.String() == "" || f.String() == "" {
			t.Error(int(d), int(f), "has no name")
		}
	})
	if n != int(directions)*int(fates) {
		t.Error(n, "counts")
	}
}

// Each direction of each flow has random numbers of its own, for losses and for damage.
func TestNoTwoFlowsHaveOneFate(t *testing.T) {
	x := NewExchange(Config{Seed: 7})
	seen := map[uint64]bool{}
	for n := range 3 {
		f := x.open(peer(n), 0)
		for d := range f.paths {
			seen[f.paths[d].rng.Uint64()] = true
			seen[f.damage[d].Uint64()] = true
		}
	}
	if want := 3 * directions * 2; len(seen) != want {
		t.Errorf("%d of %d random numbers are different", len(seen), want)
	}
}
