package sealed

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"
)

// Both ends send records once their challenges are answered, and each datagram arrives once, with
// its number and the time for which it has waited.
func TestAPathIsProvenByBothEnds(t *testing.T) {
	w := newWorld(t)
	w.active(false)
	w.run(39 * ms)
	w.active(false)
	w.run(41 * ms) // The server's challenge follows the client's.
	w.active(true)
	for _, e := range w.ends() {
		if e.RTT() != 40*ms || e.changes == 0 || e.stats.Begins.Load() != 1 || e.stats.Returns.Load() != 0 {
			t.Errorf("the round trip is %v, changed was called %d times", e.RTT(), e.changes)
		}
	}
	w.client.Send(7, []byte("data"))
	w.run(20 * ms)
	if len(w.server.got) != 1 || w.server.got[0] != 7 || w.server.waited != 3*ms {
		t.Errorf("the server has got %v, after %v in the socket", w.server.got, w.server.waited)
	}
	if n := w.count(func(p packet) bool { return p.control != "" && p.control != "at "+p.from.String() }); n > 0 {
		t.Errorf("%d records do not leave from the address to which the peer sends", n)
	}
	if c, s := w.play(time.Minute); c != 3000 || s != 3000 {
		t.Errorf("in a minute %d and %d datagrams of 3 000 arrived", c, s)
	}
	if c, s := w.client.Received(), w.server.Received(); c != w.client.stats.Received.Load() || s != w.client.stats.Sent.Load() {
		t.Errorf("%d and %d records were received", c, s)
	}
	if n := w.count(func(p packet) bool { return p.kind() != kindDatagram && binary.BigEndian.Uint32(p.b[4:]) != 0 }); n > 0 {
		t.Errorf("%d records without a datagram have its number", n)
	}
	checks := w.count(func(p packet) bool { return p.kind() == kindChallenge })
	if checks < 2*25 || checks > 2*35 || w.client.nudges > 0 {
		t.Errorf("in a minute there were %d challenges and %d packets of QUIC", checks, w.client.nudges)
	}
}

// The first challenges are repeated until they are answered.
func TestAPathIsProvenDespiteLoss(t *testing.T) {
	for name, drops := range map[string]func(w *world, p packet) bool{
		"challenges of the client":  func(w *world, p packet) bool { return p.from == w.client.addr && p.kind() == kindChallenge },
		"challenges of the server":  func(w *world, p packet) bool { return p.from == w.server.addr && p.kind() == kindChallenge },
		"responses":                 func(_ *world, p packet) bool { return p.kind() == kindResponse },
		"every packet of the world": func(*world, packet) bool { return true },
	} {
		w := newWorld(t, drops)
		w.run(250 * ms)
		if w.client.Active() && w.server.Active() {
			t.Errorf("without %s both ends are active", name)
		}
		w.drops = nil
		w.run(400 * ms)
		w.active(true)
	}
}

// The pauses between the first challenges depend on the start of the channel, not on the time of
// day.
func TestAChannelStartsAtAnyTime(t *testing.T) {
	w := newWorld(t)
	w.run(time.Hour)
	late := w.end("192.0.2.9:1", 2)
	late.open(w.server, func() {})
	late.start()
	w.run(2250 * ms)
	if n := w.count(func(p packet) bool { return p.from == late.addr }); n != 7 {
		t.Errorf("%d challenges in 2.25 s, want 7", n)
	}
}

// A path without traffic is quiet on both sides.
func TestAQuietPathIsNotChallenged(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	w.run(3 * time.Second)
	before := len(w.sent)
	w.run(time.Hour)
	if n := len(w.sent) - before; n > 0 {
		t.Errorf("%d records were sent in an hour", n)
	}
	w.active(true)
}

// While records are lost in one direction or both, both ends return to QUIC within half a second
// and two round trips, and the client has sent a packet of QUIC if it has got no records. Later the
// path is active again.
func TestLostRecordsEndThePath(t *testing.T) {
	for name, c := range map[string]struct {
		drops  func(w *world, p packet) bool
		nudges bool
	}{
		"both":      {func(*world, packet) bool { return true }, true},
		"to client": {func(w *world, p packet) bool { return p.to == w.client.addr }, true},
		"to server": {func(w *world, p packet) bool { return p.to == w.server.addr }, false},
	} {
		w := newWorld(t)
		w.play(20 * time.Second)
		w.drops = func(p packet) bool { return c.drops(w, p) }
		for end := w.now + 700*ms; w.now < end; {
			w.play(20 * ms)
			for i, e := range w.ends() {
				if !e.Active() {
					w.ends()[1-i].PeerReturned() // Its datagrams travel over QUIC.
				}
			}
		}
		w.active(false)
		if got := w.client.nudges > 0; got != c.nudges && name != "to server" {
			t.Errorf("%s: %d packets of QUIC", name, w.client.nudges)
		}
		for _, e := range w.ends() {
			if e.stats.Returns.Load() != 1 {
				t.Errorf("%s: an end has returned to QUIC %d times", name, e.stats.Returns.Load())
			}
		}
		w.drops = nil
		w.run(2 * time.Second)
		w.active(true)
	}
}

// After a time without any packet both ends use the path again soon, whichever probes first, also
// if packets are lost, and remain there.
func TestBothEndsBeginTogether(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		w.play(time.Second + time.Duration(rng.IntN(1000))*ms)
		for _, e := range w.ends() {
			e.path.pause = time.Duration(rng.IntN(4000)) * ms
		}
		lost := 100
		w.drops = func(packet) bool { return rng.IntN(100) < lost }
		w.play(time.Second + time.Duration(rng.IntN(3000))*ms)
		lost = 5
		returns := uint64(0)
		for end := w.now + 30*time.Second; w.now < end; {
			if w.now < end-20*time.Second {
				returns = w.client.stats.Returns.Load() + w.server.stats.Returns.Load()
			}
			w.play(20 * ms)
			for i, e := range w.ends() {
				if !e.Active() {
					w.ends()[1-i].PeerReturned() // Its datagrams travel over QUIC.
				}
			}
		}
		w.active(true)
		if n := w.client.stats.Returns.Load() + w.server.stats.Returns.Load() - returns; n > 0 {
			t.Errorf("seed %d: after 10 s the ends have returned to QUIC %d times", seed, n)
		}
	}
}

// A slow path with a round trip above the time of eight challenges stays active.
func TestASlowPathStaysActive(t *testing.T) {
	w := newWorld(t)
	w.delay = 450 * ms
	w.run(5 * time.Second)
	w.active(true)
	w.play(time.Minute)
	for _, e := range w.ends() {
		if n := e.stats.Returns.Load(); n > 0 {
			t.Errorf("an end has returned to QUIC %d times", n)
		}
	}
}

// Stop ends a channel: it sends no records and no responses, and its id is free.
func TestAStoppedChannelIsSilent(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	w.server.Stop()
	before := w.server.stats.Sent.Load()
	w.server.Send(1, []byte("data"))
	w.server.PeerReturned()
	for range 10 {
		w.client.Send(1, []byte("data"))
		w.run(100 * ms)
	}
	w.server.Stop()
	if n := w.server.stats.Active.Load(); n != 0 {
		t.Errorf("after two calls of Stop %d channels are active", n)
	}
	if n := w.server.stats.Sent.Load() - before; n > 0 || w.server.Active() || w.server.stats.Unknown.Load() == 0 {
		t.Errorf("it has sent %d records, is active: %v", n, w.server.Active())
	}
	if w.client.Active() {
		t.Error("its peer sends records")
	}
	if n := w.server.stats.Returns.Load(); n != 0 {
		t.Errorf("a stopped channel has returned to QUIC %d times", n)
	}
	// A record that was being read.
	changes := w.client.changes
	w.client.Stop()
	again := w.end("192.0.2.9:1", 1)
	again.open(w.client, nil)
	again.mu.Lock()
	again.askLocked(w.now, kindChallenge, again.peer.Load(), nil)
	again.mu.Unlock()
	b := w.sent[len(w.sent)-1].b
	_ = w.client.opener.open(w.client.keys, fromServer)
	before = w.client.stats.Sent.Load()
	if err := w.client.take(bytes.Clone(b), w.server.addr, nil, 0); err != nil || w.client.stats.Sent.Load() != before {
		t.Errorf("a stopped channel answers a challenge: %v", err)
	}
	w.client.tick(w.now + time.Hour)
	if w.client.stats.Sent.Load() != before || w.client.changes != changes {
		t.Error("a stopped channel probes")
	}
}

// If the socket has no room, only the record is lost.
func TestARecordWithoutRoomIsLost(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	sent := w.server.stats.Sent.Load()
	w.server.failing = true
	w.server.Send(1, []byte("data"))
	w.server.failing = false
	if n := w.server.stats.Unsent.Load(); n != 1 || w.server.stats.Sent.Load() != sent {
		t.Errorf("%d records are counted as unsent, and %d as sent", n, w.server.stats.Sent.Load()-sent)
	}
	if c, _ := w.play(100 * ms); c == 0 {
		t.Error("no later record arrives")
	}
	w.server.keys.records = w.server.sealer.sealed // The next record needs keys.
	w.server.keys.export = func(string, []byte, int) ([]byte, error) { return nil, net.ErrClosed }
	packets := len(w.sent)
	w.server.Send(1, []byte("data"))
	if n := w.server.stats.Unsent.Load(); n != 2 || len(w.sent) != packets {
		t.Errorf("%d records are counted as unsent, and %d packets were sent without a key", n, len(w.sent)-packets)
	}
}

// A response proves no path if there was no challenge, if the challenge was answered before, or if
// it was sent long ago.
func TestWrongResponsesProveNothing(t *testing.T) {
	w := newWorld(t, func(_ *world, p packet) bool { return p.kind() == kindResponse })
	w.run(10 * time.Second)
	w.drops = func(p packet) bool { return p.from == w.server.addr }
	send := func(token []byte) {
		w.client.mu.Lock()
		w.client.sendLocked(kindResponse, 0, token, w.client.peer.Load(), nil)
		w.client.mu.Unlock()
		w.run(20 * ms)
	}
	ask := w.server.asks[(w.server.asked-1)%keptTokens]
	right := bytes.Clone(ask.token[:])
	for _, token := range [][]byte{nil, make([]byte, tokenSize), right[:7], append(bytes.Clone(right), 0)} {
		if send(token); w.server.Active() {
			t.Fatalf("the response % x proves the path", token)
		}
	}
	if send(right); !w.server.Active() || w.server.RTT() < ms {
		t.Error("the right response does not prove the path")
	}
	rtt := w.server.RTT()
	if send(right); w.server.RTT() != rtt {
		t.Error("a second response to a challenge counts")
	}
}

// A response is sent to the address of its challenge, from the one to which that was sent.
func TestAChallengeIsAnsweredWhereItCameFrom(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	late := w.captureOf(kindChallenge)
	w.play(100 * ms) // Later records have arrived: the challenge moves nothing.
	late.from = netip.MustParseAddrPort("192.0.2.3:1")
	w.server.local = "elsewhere"
	before := len(w.sent)
	w.arrive(late)
	if n := len(w.sent) - before; n != 1 {
		t.Fatalf("a challenge has %d answers", n)
	}
	if p := w.sent[before]; p.kind() != kindResponse || p.to != late.from || p.control != "elsewhere" {
		t.Errorf("the answer of kind %d is sent to %v from %q", p.kind(), p.to, p.control)
	}
}

// A challenge of another size is not answered: a response is no larger than its challenge.
func TestChallengesHaveOneSize(t *testing.T) {
	w := newWorld(t)
	w.run(time.Second)
	for size := range 3 * tokenSize {
		w.client.mu.Lock()
		w.client.sendLocked(kindChallenge, 0, make([]byte, size), w.client.peer.Load(), nil)
		w.client.mu.Unlock()
		before := w.server.stats.Sent.Load()
		w.run(20 * ms)
		if got, want := w.server.stats.Sent.Load()-before, size == tokenSize; (got == 1) != want {
			t.Errorf("a challenge of %d bytes has %d responses", size, got)
		}
	}
}

// A record of an unknown kind is ignored.
func TestOtherKindsAreIgnored(t *testing.T) {
	w := newWorld(t)
	w.run(time.Second)
	before := w.server.stats.Sent.Load()
	for kind := range byte(128) {
		if kind >= kindDatagram && kind <= kindMoved {
			continue
		}
		w.client.mu.Lock()
		w.client.sendLocked(kind, 0, make([]byte, tokenSize), w.client.peer.Load(), nil)
		w.client.mu.Unlock()
	}
	w.run(time.Second)
	if len(w.server.got) > 0 || w.server.stats.Sent.Load() != before || w.server.stats.Received.Load() < 124 {
		t.Errorf("it has got %d datagrams and sent %d records", len(w.server.got), w.server.stats.Sent.Load()-before)
	}
}

// Without keys there is no channel.
func TestAChannelNeedsKeys(t *testing.T) {
	working := session(1)
	for fails := range 3 {
		calls := 0
		keys := keysOf(1)
		keys.export = func(label string, context []byte, length int) ([]byte, error) {
			if calls++; calls > fails {
				return nil, net.ErrClosed
			}
			return working(label, context, length)
		}
		if c := NewTable(Config{}).open(keys, new(net.UDPAddr), nil); c != nil {
			t.Errorf("there is a channel although export %d fails", fails)
		}
	}
}

// Sending and receiving datagrams allocate no memory.
func TestDatagramsCostNoMemory(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	var last []byte
	for _, e := range w.ends() {
		e.table.cfg.Write = func(b, _ []byte, _ *net.UDPAddr) error { last = append(last[:0], b...); return nil }
	}
	w.client.receive, w.server.receive = ignore, ignore
	data, control := make([]byte, 650), []byte("at 192.0.2.1:4433")
	round := func() {
		w.client.Send(1, data)
		w.server.table.Receive(last, w.client.addr, control, 0)
		w.server.Send(1, data)
		w.client.table.Receive(last, w.server.addr, nil, 0)
	}
	round()
	before := w.server.stats.Received.Load()
	if n := testing.AllocsPerRun(1000, round); n > 0 {
		t.Errorf("a datagram allocates %v times", n)
	}
	if w.server.stats.Received.Load()-before != 1001 {
		t.Error("datagrams did not arrive")
	}
}

func ignore([]byte, int, uint32, time.Duration) {}

// The owner is told when the path ends, either way.
func TestAnEndIsTold(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	changes := w.server.changes
	since := w.server.path.since
	w.server.path.since = w.now // Its datagrams may have been sent before.
	if w.server.PeerReturned(); w.server.changes != changes || !w.server.Active() {
		t.Error("a path that has just begun ends")
	}
	w.server.path.since = since
	if w.server.PeerReturned(); w.server.changes != changes+1 || w.server.Active() {
		t.Errorf("after the peer's return changed is called %d times", w.server.changes-changes)
	}
	if w.server.PeerReturned(); w.server.changes != changes+1 {
		t.Error("a second return is told")
	}
	changes = w.client.changes
	w.drops = func(packet) bool { return true }
	if w.play(time.Second); w.client.changes != changes+1 || w.client.Active() {
		t.Errorf("after a silence changed is called %d times", w.client.changes-changes)
	}
}
