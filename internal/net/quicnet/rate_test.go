package quicnet

import (
	"crypto/tls"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// frame is a tick of the room and a frame of the client.
const frame = time.Second / 60

// feed is a room that sends one client snapshots at 60 Hz, under the client's window.
type feed struct {
	demand int  // bytes of a snapshot with all changes
	whole  bool // it is one record, which cannot be divided
	sealed bool // datagrams travel beside QUIC

	host   *host
	server *transport.Session
	client *testClient
	window *transport.Window
	next   uint64 // packet
	shown  uint64 // first packet of the newest snapshot
	heard  time.Duration

	bytes   int             // arrived
	applied []time.Duration // frames that show a newer snapshot
}

// tick is a tick of the room.
func (f *feed) tick(now time.Duration) {
	for _, a := range f.host.Arrivals.Swap(nil) {
		if a.Kind == transport.Acks {
			f.window.Acked(now, a.Acks)
		}
	}
	if at := f.server.LinkFacts().LastArrival; at != f.heard {
		f.heard = at
		f.window.Arrived(now)
	}
	slot := f.server.Slot()
	if slot == nil {
		f.window.Blocked(now, true)
		return // The last snapshot waits for QUIC.
	}
	size := f.demand
	switch send, probe := f.window.Open(now); {
	case probe:
		f.fill(slot, now, 100, true)
	case send && !f.whole:
		size = min(size, f.window.Budget(now))
		fallthrough
	case send:
		f.fill(slot, now, size, false)
	default:
		f.window.Blocked(now, false)
	}
	f.server.Flush(now)
}

// fill fills a slot with packets that contain their id and the id of the snapshot's first packet.
func (f *feed) fill(slot *transport.Slot, now time.Duration, size int, probe bool) {
	n := (size + transport.MaxStatePacket - 1) / transport.MaxStatePacket
	first := f.next
	for range n {
		b := binary.BigEndian.AppendUint64(nil, f.next)
		b = binary.BigEndian.AppendUint64(b, first)
		slot.Packets = append(slot.Packets, append(b, make([]byte, size/n-len(b))...))
		f.next++
	}
	f.window.Sent(now, first, f.next-1, size, probe)
}

// frame is a frame of the client.
func (f *feed) frame(now time.Duration) {
	for _, a := range f.client.Arrivals.Swap(nil) {
		if a.Kind != transport.State {
			continue
		}
		f.bytes += len(a.State)
		id, first := binary.BigEndian.Uint64(a.State), binary.BigEndian.Uint64(a.State[8:])
		if first < f.shown {
			continue // Overtaken: discarded, and not acknowledged.
		}
		if first > f.shown && len(a.State) > 100 {
			f.applied = append(f.applied, now)
		}
		f.shown = first
		f.client.AckState(id)
	}
	f.client.Flush(now)
}

// play runs the feed over a link; a client's number chooses the link's random numbers.
func (f *feed) play(t *testing.T, link netem.Link, client byte, d time.Duration) {
	onThin(t, link, func(t *testing.T, n *thin, h *host) {
		n.mu.Lock()
		dialer := NewDialerOn(n.socket(client))
		n.mu.Unlock()
		g := &testClient{Owner: nettest.NewOwner(nil)}
		var err error
		g.Session, g.welcome, err = Dial(t.Context(), DialConfig{
			QUICOnly: !f.sealed, Dialer: dialer, Addr: "10.0.0.0:4433", TLS: &tls.Config{InsecureSkipVerify: true},
			Greeting: transport.Greeting{Hello: nettest.Hello()}, Session: transport.SessionConfig{Inbox: g.Arrivals},
		})
		if err != nil {
			t.Fatal(err)
		}
		f.client, f.host, f.server, f.next = g, h, h.session(g), 1
		f.window = transport.NewWindow(frame)
		began := time.Now()
		for now := time.Duration(0); now < d; now += frame {
			time.Sleep(now - time.Since(began))
			f.tick(now)
			time.Sleep(now + frame/2 - time.Since(began))
			f.frame(now + frame/2)
		}
		g.Session.Close(transport.CodeLeft, "")
		time.Sleep(15 * time.Second) // The connection ends.
		_ = dialer.Close()
	})
}

// QUIC's congestion control takes every loss for congestion: at 150 ms and 5 % of loss it carries
// about 40 kB/s, and often half of it. Snapshots come at an even pace all the same, because they
// become smaller. With the window alone, those of 2 500 B come at 22 Hz, and over
// 40 kbit/s at 4 Hz.
// Snapshots of one record come less often. Beside QUIC, loss delays nothing.
func TestSnapshotsKeepTheirPaceOverQUIC(t *testing.T) {
	const ms = time.Millisecond
	far := netem.Link{Delay: 75 * ms, Jitter: 20 * ms, Loss: 0.05}
	for _, c := range []struct {
		link   netem.Link
		demand int
		kind   string
		hz     int           // at least
		p99    time.Duration // of the gaps, at most; the longest gap may be six times as long
	}{
		{far, 250, "", 52, 100 * ms},
		{far, 900, "", 36, 250 * ms},
		{far, 900, "whole", 25, 270 * ms},
		{far, 2500, "", 36, 250 * ms},
		{netem.Link{Delay: 125 * ms, Loss: 0.03}, 900, "", 36, 270 * ms},
		{far, 900, "sealed", 52, 100 * ms},
		{netem.Link{Delay: 125 * ms, Loss: 0.03}, 900, "sealed", 52, 100 * ms},
		{netem.Link{Delay: 30 * ms, Jitter: 5 * ms, Loss: 0.01}, 900, "", 55, 80 * ms},
		{netem.Link{Delay: 30 * ms, Bandwidth: 2_000_000, Buffer: 100 * ms}, 5000, "", 50, 100 * ms},
		{netem.Link{Delay: 100 * ms, Bandwidth: 40_000, Buffer: 400 * ms}, 900, "", 5, 1500 * ms},
	} {
		for client := range byte(2) {
			f := &feed{demand: c.demand, whole: c.kind == "whole", sealed: c.kind == "sealed"}
			f.play(t, c.link, client+1, time.Minute)
			hz, gaps := f.pace()
			p99, most := gaps[len(gaps)*99/100], gaps[len(gaps)-1]
			t.Logf("%+v, %d B %s: %d Hz, %d kB/s, gap p99 %v, max %v", c.link, c.demand, c.kind, hz, f.bytes/60_000, p99, most)
			if hz < c.hz || p99 > c.p99 || most > 6*c.p99 {
				t.Errorf("%+v, %d B %s: %d Hz, gap p99 %v, max %v", c.link, c.demand, c.kind, hz, p99, most)
			}
		}
	}
}

// pace returns the rate of the snapshots, and their sorted gaps, after the first five seconds.
func (f *feed) pace() (hz int, gaps []time.Duration) {
	const from = 5 * time.Second
	for i, at := range f.applied[1:] {
		if f.applied[i] >= from {
			gaps = append(gaps, at-f.applied[i])
		}
	}
	slices.Sort(gaps)
	return int(time.Duration(len(gaps)) * time.Second / (f.applied[len(f.applied)-1] - from)), gaps
}
