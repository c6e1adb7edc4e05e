package transport_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/net/memnet"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// frame is the tick of the rooms and the clients of these tests.
const frame = time.Second / 60

// feed is a room that sends one client snapshots of a fixed size under its ack window,
// and the client, which acknowledges them at 60 Hz: real sessions on a modelled link.
type feed struct {
	link    memnet.Link
	hz      int // of snapshots, a divisor of 60
	packets int // of a snapshot
	size    int // of a packet
	seed    uint64
	// at is called before each tick of the room.
	at func(f *feed, now time.Duration)

	net     *memnet.Network
	conn    *memnet.Conn
	server  *transport.Session
	client  *transport.Session
	window  *transport.Window
	inbox   *transport.Inbox
	batch   []transport.Arrival
	cInbox  *transport.Inbox
	cBatch  []transport.Arrival
	lastIn  time.Duration
	joined  time.Duration
	packet  uint64
	due     bool
	quiet   int // polls since the window last had news
	heard   time.Duration
	spoke   time.Duration
	shown   snapshot // the newest applied
	arrived int      // packets of it

	// Results of the tests. Times are counted from the join.
	wanted, sent, probes, complete int
	// flushes of a due snapshot that the window held back
	blocked     []time.Duration
	unexplained int // of them, with news in the last two polls
	// when the first packet of a newer snapshot, not of a probe, arrived
	applied []time.Duration
	// at each frame of the client, after the first two seconds
	ages  []time.Duration
	taken int // packets applied
	most  int // snapshots in flight
}

type snapshot struct {
	tick  time.Duration
	count int
}

// Tables implements transport.Handler.
func (f *feed) Tables(*netloopv1.Hello) ([]byte, error) { return nil, nil }

// Admit implements transport.Handler.
func (f *feed) Admit(context.Context, *netloopv1.Hello, string) (*transport.Admitted, error) {
	rate := &netloopv1.Rate{Num: 60, Den: 1}
	return &transport.Admitted{
		Welcome: &netloopv1.Welcome{ClientId: 1, TickRate: rate, FixedRate: rate},
		Session: transport.SessionConfig{ID: 1, Inbox: f.inbox},
		Joined:  func(s *transport.Session) { f.server = s },
	}, nil
}

// connect performs the handshake.
func (f *feed) connect(t *testing.T) {
	t.Helper()
	f.net = memnet.New(f.seed)
	f.net.Serve(f)
	f.inbox, f.cInbox = transport.NewInbox(0, nil), transport.NewInbox(0, nil)
	var failed error
	f.conn = f.net.Dial(f.link, transport.Greeting{Hello: &netloopv1.Hello{Protocol: transport.ProtocolVersion}}, transport.SessionConfig{Inbox: f.cInbox},
		func(s *transport.Session, _ *netloopv1.Welcome, err error) { f.client, failed = s, err })
	for f.client == nil && failed == nil {
		f.net.Advance(f.net.Now() + frame)
	}
	if failed != nil {
		t.Fatalf("seed %d: %v", f.seed, failed)
	}
	f.joined = f.net.Now()
	f.window = transport.NewWindow(time.Second / time.Duration(f.hz))
	f.packet = 1
}

// run runs for so long.
func (f *feed) run(t *testing.T, d time.Duration) {
	t.Helper()
	f.connect(t)
	phase := time.Duration(rand.New(rand.NewPCG(f.seed, 77)).Int64N(int64(frame)))
	for i := range int(d / frame) {
		now := time.Duration(i) * frame
		f.net.Advance(f.joined + now)
		f.room(now, i%(60/f.hz) == 0)
		f.net.Advance(f.joined + now + phase)
		f.play(now + phase)
	}
}

// room is one tick of the room.
func (f *feed) room(now time.Duration, period bool) {
	if f.at != nil {
		f.at(f, now)
	}
	f.poll(now)
	if period {
		f.due = true
		f.wanted++
	}
	if !f.due {
		return
	}
	send, probe := f.window.Open(now)
	if !send {
		f.blocked = append(f.blocked, now)
		if f.quiet < 2 {
			f.unexplained++
		}
	}
	if send || probe {
		f.flush(now, probe)
	}
}

func (f *feed) poll(now time.Duration) {
	f.batch = f.inbox.Swap(f.batch)
	if in := f.server.LinkFacts().LastArrival - f.joined; in != f.lastIn {
		f.lastIn = in
		f.window.Arrived(in)
	}
	before := f.window.InFlight()
	for _, a := range f.batch {
		if a.Kind == transport.Acks {
			f.window.Acked(now, a.Acks)
		}
	}
	f.quiet++
	if f.window.InFlight() < before {
		f.quiet = 0
	}
}

func (f *feed) flush(now time.Duration, probe bool) {
	slot := f.server.Slot()
	if slot == nil {
		panic("the slot is taken, which memnet does only for a stalled client")
	}
	packets, size := f.packets, f.size
	if probe {
		packets, size = 1, 100
		f.probes++
	} else {
		f.due = false
		f.sent++
	}
	for i := range packets {
		b := binary.BigEndian.AppendUint64(nil, f.packet+uint64(i))
		b = binary.BigEndian.AppendUint64(b, uint64(now))
		b = append(b, byte(packets))
		slot.Packets = append(slot.Packets, append(b, make([]byte, size-len(b))...))
	}
	f.window.Sent(now, f.packet, f.packet+uint64(packets)-1, packets*size, probe)
	f.most = max(f.most, f.window.InFlight())
	f.packet += uint64(packets)
	f.server.Flush(f.joined + now)
}

// play is one frame of the client.
func (f *feed) play(now time.Duration) {
	f.cBatch = f.cInbox.Swap(f.cBatch)
	for _, a := range f.cBatch {
		if a.Kind == transport.State {
			f.apply(a.State, a.At-f.joined)
		}
	}
	if now > 2*time.Second {
		f.ages = append(f.ages, now-f.shown.tick)
	}
	// A client without arrivals for 500 ms sends at 10 Hz.
	if now-f.heard < 500*time.Millisecond || now-f.spoke >= 100*time.Millisecond {
		f.spoke = now
		f.client.Flush(f.joined + now)
	}
}

func (f *feed) apply(b []byte, at time.Duration) {
	f.heard = at
	s := snapshot{tick: time.Duration(binary.BigEndian.Uint64(b[8:])), count: int(b[16])}
	if s.tick < f.shown.tick {
		return // Overtaken: discarded, and not acknowledged.
	}
	if s.tick > f.shown.tick || f.taken == 0 {
		f.shown, f.arrived = s, 0
		if s.count == f.packets {
			f.applied = append(f.applied, at)
		}
	}
	f.client.AckState(binary.BigEndian.Uint64(b))
	f.arrived++
	f.taken++
	if f.arrived == s.count {
		f.complete++
	}
}

// percentile sorts d.
func percentile(d []time.Duration, p float64) time.Duration {
	slices.Sort(d)
	return d[int(p*float64(len(d)-1))]
}

// since counts the times at or after one.
func since(times []time.Duration, from time.Duration) (n int) {
	for _, t := range times {
		if t >= from {
			n++
		}
	}
	return n
}

func (f *feed) String() string {
	return fmt.Sprintf("%d Hz of %d×%d B, seed %d, link %+v", f.hz, f.packets, f.size, f.seed, f.link)
}
