package transport_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
)

// street is a bottleneck that several flows share, and the way back, in virtual time.
type street struct {
	now    time.Duration
	events netem.Schedule[func()]
	down   netem.Path
	up     netem.Path // its packets are small, so it has no bottleneck
}

func newStreet(l netem.Link, seed uint64) *street {
	back := l
	back.Bandwidth = 0
	return &street{down: netem.NewPath(l, seed, 1), up: netem.NewPath(back, seed, 2)}
}

func (s *street) after(d time.Duration, f func()) { s.events.Push(s.now+d, f) }

func (s *street) run(to time.Duration) {
	for {
		f, at, ok := s.events.Pop(to)
		if !ok {
			s.now = to
			return
		}
		s.now = at
		f()
	}
}

// send sends a packet, and calls arrived if it is not lost.
func (s *street) send(p *netem.Path, size int, arrived func()) {
	t := p.Send(s.now, size)
	for _, at := range t.At[:t.Copies] {
		s.events.Push(at, arrived)
	}
}

// player is a client that is sent snapshots at 60 Hz under a window, over UDP: all packets of a
// snapshot at once. It acknowledges with each of its frames.
type player struct {
	s      *street
	window *transport.Window
	demand int    // bytes of a snapshot with all changes
	talk   int    // bytes of unreliable messages in each tick, after three seconds
	next   uint64 // packet
	shown  uint64 // first packet of the newest snapshot
	newest uint64
	acked  map[uint64]bool
	inbox  [][]transport.Range

	bytes   int             // arrived, of snapshots
	heard   int             // arrived, of messages
	applied []time.Duration // arrivals of snapshots
}

func newPlayer(s *street, demand int, tick, frame time.Duration) *player {
	p := &player{s: s, demand: demand, next: 1, window: transport.NewWindow(time.Second / 60), acked: map[uint64]bool{}}
	s.after(tick, p.tick)
	s.after(frame, p.frame)
	return p
}

// tick is a tick of the room.
func (p *player) tick() {
	p.s.after(frame, p.tick)
	for _, r := range p.inbox {
		p.window.Arrived(p.s.now)
		p.window.Acked(p.s.now, r)
	}
	p.inbox = p.inbox[:0]
	switch send, probe := p.window.Open(p.s.now); {
	case send:
		p.flush(min(p.demand, p.window.Budget(p.s.now)), false)
	case probe:
		p.flush(100, true)
	}
	if n := min(p.talk, p.window.Messages(p.s.now)); n > 0 && p.s.now > 3*time.Second {
		p.window.Said(p.s.now, n)
		for ; n > 0; n -= 1000 {
			size := min(n, 1000)
			p.s.send(&p.s.down, size, func() { p.heard += size })
		}
	}
}

func (p *player) flush(size int, probe bool) {
	n := (size + transport.MaxStatePacket - 1) / transport.MaxStatePacket
	first := p.next
	p.next += uint64(n)
	p.window.Sent(p.s.now, first, p.next-1, size, probe)
	for id := first; id < p.next; id++ {
		p.s.send(&p.s.down, size/n+60, func() {
			p.bytes += size / n
			if first < p.shown {
				return // Overtaken: discarded, and not acknowledged.
			}
			if first > p.shown && !probe {
				p.applied = append(p.applied, p.s.now)
			}
			p.shown, p.newest, p.acked[id] = first, max(p.newest, id), true
		})
	}
}

// frame is a frame of the client.
func (p *player) frame() {
	p.s.after(frame, p.frame)
	var r []transport.Range
	for id := p.newest; id > 0 && p.newest-id < 200; id-- {
		switch n := len(r); {
		case !p.acked[id]:
		case n > 0 && r[n-1].First == id+1:
			r[n-1].First = id
		default:
			r = append(r, transport.Range{First: id, Last: id})
		}
	}
	p.s.send(&p.s.up, 60, func() { p.inbox = append(p.inbox, r) })
}

// hertz returns the rate of the snapshots, and their gaps, after the first five seconds.
func (p *player) hertz() (hz float64, gaps []time.Duration) {
	for i, at := range p.applied[1:] {
		if before := p.applied[i]; before >= 5*time.Second {
			gaps = append(gaps, at-before)
		}
	}
	slices.Sort(gaps)
	return float64(len(gaps)) / (p.s.now - 5*time.Second).Seconds(), gaps
}

// download is a TCP flow that sends as much as it may: NewReno with selective acknowledgements.
type download struct {
	s              *street
	window, thresh float64 // in packets
	next, oldest   int
	recover        int
	out            map[int]bool
	srtt, heard    time.Duration
	bytes          int
}

func newDownload(s *street) *download {
	d := &download{s: s, window: 10, thresh: 1e9, out: map[int]bool{}}
	s.after(0, d.push)
	s.after(0, d.timeout)
	return d
}

func (d *download) push() {
	for float64(len(d.out)) < d.window {
		seq, at := d.next, d.s.now
		d.next++
		d.out[seq] = true
		d.s.send(&d.s.down, 1500, func() {
			d.bytes += 1448
			d.s.send(&d.s.up, 60, func() { d.ack(seq, at) })
		})
	}
}

func (d *download) ack(seq int, sent time.Duration) {
	if !d.out[seq] {
		return
	}
	delete(d.out, seq)
	if d.srtt == 0 {
		d.srtt = d.s.now - sent
	}
	d.srtt += (d.s.now - sent - d.srtt) / 8
	d.heard = d.s.now
	for ; d.oldest <= seq-3; d.oldest++ {
		if d.out[d.oldest] { // Lost.
			delete(d.out, d.oldest)
			if d.oldest >= d.recover {
				d.window = max(d.window/2, 2)
				d.thresh, d.recover = d.window, d.next
			}
		}
	}
	switch {
	case seq < d.recover:
	case d.window < d.thresh:
		d.window++
	default:
		d.window += 1 / d.window
	}
	d.push()
}

// timeout is the retransmission timer.
func (d *download) timeout() {
	d.s.after(10*ms, d.timeout)
	if len(d.out) > 0 && d.s.now-d.heard > max(2*d.srtt, 300*ms) {
		clear(d.out)
		d.thresh, d.window, d.recover, d.heard = max(d.window/2, 2), 1, d.next, d.s.now
		d.push()
	}
}

// narrow is a link that eight clients, or a client and a download, fill.
var narrow = netem.Link{Delay: 30 * ms, Bandwidth: 2_000_000, Buffer: 100 * ms}

// TestEightClientsShareALink: the clients are in one room, which sends all snapshots at one
// instant in the same order, or in a room each. Without the byte rate the last clients of a room
// starve.
func TestEightClientsShareALink(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, rooms := range []int{1, 8} {
		for _, demand := range []int{250, 900, 2500} {
			for seed := range seeds.Long(t, 2, 50) {
				rng := rand.New(rand.NewPCG(seed, uint64(rooms)))
				phase := func() time.Duration { return time.Duration(rng.Int64N(int64(frame))) }
				s := newStreet(narrow, seed)
				var players []*player
				for range 8 {
					tick := time.Duration(0)
					if rooms > 1 {
						tick = phase()
					}
					players = append(players, newPlayer(s, demand, tick, phase()))
				}
				s.run(time.Minute)
				var bytes []int
				sum := 0
				for _, p := range players {
					bytes, sum = append(bytes, p.bytes), sum+p.bytes
				}
				ratio := float64(slices.Max(bytes)) / float64(slices.Min(bytes))
				t.Logf("%d rooms, %d B, seed %d: %d kbit/s, largest ÷ smallest %.2f", rooms, demand, seed, sum*8/60_000, ratio)
				if ratio > 2.1 || demand > 250 && sum*8/60 < 1_500_000 {
					t.Errorf("%d rooms, %d B, seed %d: %v bytes", rooms, demand, seed, bytes)
				}
			}
		}
	}
}

// TestADownloadKeepsItsShare: beside a client that wants the whole link, and more. The client's
// snapshots become smaller, and come as often.
func TestADownloadKeepsItsShare(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, demand := range []int{900, 2500, 5000, 10_000} {
		for seed := range seeds.Long(t, 2, 50) {
			s := newStreet(narrow, seed)
			p, d := newPlayer(s, demand, 0, time.Duration(seed)*3*ms), newDownload(s)
			s.run(time.Minute)
			hz, gaps := p.hertz()
			t.Logf("%d B, seed %d: TCP %d kbit/s, client %d kbit/s at %.1f Hz, gap p99 %v, max %v", demand, seed,
				d.bytes*8/60_000, p.bytes*8/60_000, hz, percentile(gaps, 0.99), slices.Max(gaps))
			if d.bytes*8/60 < 800_000 || hz < 40 || percentile(gaps, 0.99) > 200*ms {
				t.Errorf("%d B, seed %d: TCP %d bit/s, client at %.1f Hz, gap p99 %v", demand, seed, d.bytes*8/60, hz, percentile(gaps, 0.99))
			}
		}
	}
}

// TestLossIsNotCongestion: random loss reduces neither rate nor size.
func TestLossIsNotCongestion(t *testing.T) {
	for _, c := range []struct {
		link netem.Link
		hz   float64 // at least
	}{
		{netem.Link{Delay: 75 * ms, Jitter: 20 * ms, Loss: 0.05}, 55},
		{netem.Link{Delay: 125 * ms, Loss: 0.03}, 57},
		{netem.Link{Delay: 30 * ms, Jitter: 5 * ms, Loss: 0.08}, 54},
	} {
		for _, demand := range []int{250, 900} {
			s := newStreet(c.link, 1)
			p := newPlayer(s, demand, 0, 5*ms)
			s.run(time.Minute)
			hz, gaps := p.hertz()
			size := p.bytes / len(p.applied)
			t.Logf("%+v, %d B: %.1f Hz of %d B, gap p99 %v, max %v", c.link, demand, hz, size, percentile(gaps, 0.99), slices.Max(gaps))
			if hz < c.hz || size < demand*97/100 {
				t.Errorf("%+v, %d B: %.1f Hz of %d B", c.link, demand, hz, size)
			}
		}
	}
}

// TestASlowLinkGetsSmallSnapshots: a link of 40 kbit/s carries five snapshots of 900 B a second, or
// thirteen small ones.
func TestASlowLinkGetsSmallSnapshots(t *testing.T) {
	for _, demand := range []int{250, 900, 2500} {
		s := newStreet(netem.Link{Delay: 100 * ms, Bandwidth: 40_000, Buffer: 400 * ms}, 1)
		p := newPlayer(s, demand, 0, 5*ms)
		s.run(time.Minute)
		hz, gaps := p.hertz()
		t.Logf("%d B: %d kbit/s, %.1f Hz, gap p99 %v, max %v", demand, p.bytes*8/60_000, hz, percentile(gaps, 0.99), slices.Max(gaps))
		if hz < 10 || percentile(gaps, 0.99) > 450*ms || p.bytes*8/60 < 24_000 {
			t.Errorf("%d B: %d bit/s, %.1f Hz, gap p99 %v", demand, p.bytes*8/60, hz, percentile(gaps, 0.99))
		}
	}
}

// TestMessagesObeyTheRate: a game that sends more unreliable messages than a link carries fills no
// queue with them, and its snapshots and a download keep their shares.
func TestMessagesObeyTheRate(t *testing.T) {
	for _, c := range []struct {
		demand, talk int
	}{{250, 2000}, {900, 1000}, {900, 4000}} {
		s := newStreet(narrow, 1)
		p, d := newPlayer(s, c.demand, 0, 3*ms), newDownload(s)
		p.talk = c.talk
		s.run(time.Minute)
		hz, gaps := p.hertz()
		t.Logf("%d B and %d B of messages: TCP %d kbit/s, snapshots %d kbit/s at %.1f Hz, messages %d kbit/s, gap p99 %v", c.demand, c.talk,
			d.bytes*8/60_000, p.bytes*8/60_000, hz, p.heard*8/60_000, percentile(gaps, 0.99))
		if d.bytes*8/60 < 800_000 || hz < 25 || p.heard == 0 || percentile(gaps, 0.99) > 200*ms {
			t.Errorf("%d B and %d B of messages: TCP %d bit/s, snapshots at %.1f Hz, %d B of messages, gap p99 %v", c.demand, c.talk, d.bytes*8/60, hz, p.heard, percentile(gaps, 0.99))
		}
	}
	s := newStreet(netem.Link{Delay: 100 * ms, Bandwidth: 40_000, Buffer: 400 * ms}, 1)
	p := newPlayer(s, 900, 0, 5*ms)
	p.talk = 300 // 144 kbit/s
	s.run(time.Minute)
	hz, gaps := p.hertz()
	t.Logf("a slow link: %d kbit/s at %.1f Hz, messages %d kbit/s, gap p99 %v", p.bytes*8/60_000, hz, p.heard*8/60_000, percentile(gaps, 0.99))
	if hz < 5 || p.heard == 0 {
		t.Errorf("a slow link: %.1f Hz, %d B of messages", hz, p.heard)
	}
}
