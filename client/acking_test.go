package client

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/netloop/netloop/internal/netvar/replica"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// acked simulates a client that flushes once a tick and has no data to send: a snapshot of each
// tick that is a multiple of every arrives, unless packets returns others, in so many packets. It
// returns the ticks with a flush that sent a datagram.
func acked(hz time.Duration, every uint64, ticks uint64, packets func(tick uint64) (number, arrive int)) (flushes []uint64) {
	var r losses
	r.restart(uint32(every))
	var a acking
	period, id := time.Second/hz, 0
	for tick := uint64(1); tick <= ticks; tick++ {
		if tick%every == 0 {
			number, arrive := packets(tick)
			for i := range arrive {
				r.packet(&replica.Applied{Packet: uint64(id + i), Tick: tick, Index: i, Count: number})
			}
			id += number
		}
		if a.due(time.Duration(tick)*period, &r, period) {
			flushes = append(flushes, tick)
		}
	}
	return flushes
}

// from leaves out the ticks before one.
func from(tick uint64, flushes []uint64) []uint64 {
	return slices.DeleteFunc(flushes, func(f uint64) bool { return f < tick })
}

// multiples returns the multiples of n from first to last.
func multiples(n, first, last uint64) (ticks []uint64) {
	for t := (first + n - 1) / n * n; t <= last; t += n {
		ticks = append(ticks, t)
	}
	return ticks
}

func oneEach(uint64) (number, arrive int) { return 1, 1 }

// From two seconds after the first snapshot on, every third snapshot is acknowledged, or more of
// them if they are rare, and the same ones for every client.
func TestAHealthyLinkIsAcknowledgedSeldom(t *testing.T) {
	for _, c := range []struct {
		hz          time.Duration
		every, each uint64 // ticks
	}{
		{60, 1, 3}, {128, 1, 3}, {30, 1, 1}, {40, 1, 2}, {20, 1, 1}, {60, 2, 2}, {120, 2, 6}, {10, 1, 1}, {60, 6, 6}, {60, 60, 6}, {1000, 1, 3}, {1000, 17, 51}, {1000, 25, 50}, {1000, 26, 26}, {1000, 1000, 100},
	} {
		second := uint64(c.hz)
		got := acked(c.hz, c.every, 8*second, oneEach)
		begin := from(c.every, got)[:second]
		if slices.Contains([]uint64{1, 2}, c.every) && !slices.Equal(begin, multiples(1, c.every, c.every+second-1)) {
			t.Errorf("%+v: in the first second it is at ticks %v", c, begin)
		}
		calm := 4 * second
		if got, want := from(calm, got), multiples(c.each, calm, 8*second); c.every != 60 && !slices.Equal(got, want) {
			t.Errorf("%+v: later it is at ticks %v, want %v", c, got, want)
		} else if c.every == 60 && (len(got) < len(want)-5 || len(got) > 2*len(want)) {
			t.Errorf("%+v: where one comes a second it is at ticks %v", c, got)
		}
	}
}

// A link is good after two seconds, to the millisecond: the first snapshot counts as a loss,
// because earlier packets are unknown.
func TestALinkIsWellAfterTwoSeconds(t *testing.T) {
	got := acked(1000, 17, 4000, oneEach)
	want := slices.Concat(multiples(1, 17, 17+1999), multiples(51, 17+2000, 4000))
	if !slices.Equal(got, want) {
		t.Errorf("%d flushes, want %d; those after %d: %v", len(got), len(want), 17+2000, from(17+2000, got))
	}
}

// If no snapshot arrives, each flush is acknowledged from the time on when the next snapshot is
// late by a period and 50 ms.
func TestLateSnapshotsAreAcknowledgedAtOnce(t *testing.T) {
	const last = 4000 // ms
	got := from(last+1, acked(1000, 10, last+200, func(tick uint64) (number, arrive int) {
		if tick <= last {
			return 1, 1
		}
		return 0, 0
	}))
	if want := multiples(1, last+2*10+50+1, last+200); !slices.Equal(got, want) {
		t.Errorf("flushes at %v, want %v", got, want)
	}
}

// The ticks between two snapshots and their length are numbers of the server; their product
// overflows for a hostile server.
func TestNoServerMakesTheTimeOfASnapshotNothing(t *testing.T) {
	var r losses
	r.restart(1 << 15)
	r.packet(&replica.Applied{Packet: 1, Tick: 1 << 15, Count: 1})
	if a := new(acking); !a.due(time.Second, &r, 1<<49) {
		t.Error("the first snapshot is worth no datagram")
	}
}

// TestTroubleIsAcknowledgedAtOnce: each flush is worth a datagram from when the client notices
// until two seconds have passed without any more.
func TestTroubleIsAcknowledgedAtOnce(t *testing.T) {
	const at, seconds = 400, 121 // A period is a little less than a 60th.
	except := func(from, to uint64, number, arrive int) func(uint64) (int, int) {
		return func(tick uint64) (int, int) {
			if from <= tick && tick <= to {
				return number, arrive
			}
			return max(number, 1), max(number, 1)
		}
	}
	for name, c := range map[string]struct {
		packets func(tick uint64) (number, arrive int)
		// the last tick before the trouble that may have a flush, and those with one each
		calm, from, to uint64
	}{
		"lost":          {except(at, at, 1, 0), at - 1, at + 1, at + seconds},
		"held back":     {except(at, at, 0, 0), at - 1, at + 1, at + seconds},
		"half lost":     {except(at, at, 2, 1), at - 1, at + 1, at + seconds},
		"nothing comes": {except(at, 600, 1, 0), at - 1, at + 5, 600}, // It is late by 50 ms.
	} {
		got := from(300, acked(60, 1, 600, c.packets))
		want := slices.Concat(multiples(3, 300, c.calm), multiples(1, c.from, c.to), multiples(3, c.to+1, 600))
		if !slices.Equal(got, want) {
			t.Errorf("%s: flushes at ticks %v, want %v", name, got, want)
		}
	}
}

// An acknowledgement waits for the whole snapshot: the first packets of a snapshot that is due for
// one do not use up its turn.
func TestAnAckWaitsForTheWholeSnapshot(t *testing.T) {
	var r losses
	r.restart(1)
	var a acking
	period := time.Second / 60
	at := func(tick uint64) time.Duration { return time.Duration(tick) * period }
	for tick := uint64(1); tick < 300; tick++ {
		r.packet(&replica.Applied{Packet: tick, Tick: tick, Count: 1})
		a.due(at(tick), &r, period)
	}
	r.packet(&replica.Applied{Packet: 300, Tick: 300, Count: 2})
	if a.due(at(300), &r, period) {
		t.Error("half a snapshot is worth a datagram")
	}
	r.packet(&replica.Applied{Packet: 301, Tick: 300, Index: 1, Count: 2})
	if !a.due(at(301), &r, period) {
		t.Error("its other half is worth none")
	}
}

// A client without data sends datagrams for every third snapshot only. While it sends data, each
// flush has one.
func TestAClientWithNothingToSaySendsLittle(t *testing.T) {
	r := newRig(t)
	hz := &netloopv1.Rate{Num: 60, Den: 1}
	r.connect(&netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, Minor: 3, Epoch: &netloopv1.Epoch{Tick: 1},
	})
	s := r.states(1)
	tick := uint64(1)
	play := func(ticks int, say func()) (datagrams int) {
		for range ticks {
			tick++
			packets := s.at(tick, r.clock.Now())
			for i := range packets {
				if packets[i].Session = r.conn.session; !r.conn.session.Inbox().Push(packets[i]) {
					t.Fatal("the inbox does not take it")
				}
			}
			// The link lives.
			r.link.ReceiveDatagram(r.clock.Now(), protowire.AppendVarint([]byte{8}, tick))
			say()
			r.frame(time.Second / 60)
			// It never fails.
			_ = r.link.SendDatagrams(r.clock.Now, func([]byte) error { datagrams++; return nil })
		}
		return datagrams
	}
	quiet := func() {}
	r.time.requested, r.time.requests = time.Hour, 1 // It does not ask for the time.
	play(240, quiet)
	if n := play(300, quiet); n != 100 {
		t.Errorf("%d datagrams in 300 flushes, want 100", n)
	}
	talk := func() {
		if err := Send(r.Client, rigLoose, rigWord{1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := play(300, talk); n != 300 {
		t.Errorf("%d datagrams in 300 flushes with a message each", n)
	}
}
