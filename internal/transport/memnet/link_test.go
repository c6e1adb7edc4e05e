package memnet

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestPerfectLinkDeliversAtOnce(t *testing.T) {
	p := newPath(Link{}, 1, 1)
	if tr := p.send(5*ms, 1000); tr.copies != 1 || tr.at[0] != 5*ms {
		t.Fatalf("%+v", tr)
	}
}

func TestDelayAndJitterStayWithinTheirBounds(t *testing.T) {
	p := newPath(Link{Delay: 30 * ms, Jitter: 10 * ms}, 1, 1)
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		at := p.send(0, 1000).at[0]
		least, most = min(least, at), max(most, at)
	}
	if least < 30*ms || least > 31*ms || most > 40*ms || most < 39*ms {
		t.Fatal(least, most)
	}
}

// TestBandwidthIsExact: headers included, no packet is early and none is lost below it.
func TestBandwidthIsExact(t *testing.T) {
	p := newPath(Link{Bandwidth: 80_000, Buffer: 10 * time.Second}, 1, 1)
	for i := range 100 {
		want := time.Duration(i+1) * 100 * ms // 940+60 bytes at 80 kbit/s
		if tr := p.send(0, 940); tr.copies != 1 || tr.at[0] != want {
			t.Fatalf("packet %d: %+v, want %v", i, tr, want)
		}
	}
	if got := p.backlog(4 * time.Second); got != 6*time.Second {
		t.Fatal("backlog", got)
	}
}

func TestRouterDropsBeyondItsBuffer(t *testing.T) {
	for _, c := range []struct {
		buffer time.Duration
		want   int
	}{{500 * ms, 6}, {0, 3}, {1500 * ms, 16}} {
		p := newPath(Link{Bandwidth: 80_000, Buffer: c.buffer}, 1, 1)
		passed, tail := 0, 0
		for range 40 {
			tr := p.send(0, 940)
			passed += tr.copies
			if tr.tail {
				tail++
			}
		}
		if passed != c.want || tail != 40-c.want {
			t.Errorf("buffer %v: %d passed, want %d; %d dropped", c.buffer, passed, c.want, tail)
		}
		if tr := p.send(100*ms, 940); tr.copies != 1 {
			t.Errorf("buffer %v: no room although one packet has left", c.buffer)
		}
	}
}

func TestSharesAreAsAsked(t *testing.T) {
	const n = 200_000
	p := newPath(Link{Loss: 0.05, Duplicate: 0.02, Reorder: 0.1}, 7, 1)
	var lost, twice, late float64
	for range n {
		tr := p.send(0, 100)
		switch tr.copies {
		case 0:
			lost++
			continue
		case 2:
			twice++
			if tr.at[1] < tr.at[0] || tr.at[1] > tr.at[0]+duplicateDelay {
				t.Fatal("the copy came", tr.at[1]-tr.at[0], "after")
			}
		}
		if tr.at[0] > 0 {
			late++
		}
	}
	for name, got := range map[string][2]float64{"lost": {lost / n, 0.05}, "twice": {twice / (n - lost), 0.02}, "late": {late / (n - lost), 0.1}} {
		if math.Abs(got[0]-got[1]) > 0.003 {
			t.Errorf("%s: %.4f, want %.4f", name, got[0], got[1])
		}
	}
}

func TestLostPacketsTakeTheirTimeAtTheBottleneck(t *testing.T) {
	p := newPath(Link{Bandwidth: 80_000, Loss: 1}, 1, 1)
	p.send(0, 940)
	if p.backlog(0) != 100*ms {
		t.Fatal(p.backlog(0))
	}
}

// TestLuckOfOnePacketIsItsOwn: switching a feature on leaves the luck of the others alone.
func TestLuckOfOnePacketIsItsOwn(t *testing.T) {
	plain, busy := newPath(Link{Loss: 0.3}, 3, 1), newPath(Link{Loss: 0.3, Jitter: 5 * ms, Duplicate: 0.5, Reorder: 0.5}, 3, 1)
	for i := range 1000 {
		a, b := plain.send(0, 100), busy.send(0, 100)
		if (a.copies == 0) != (b.copies == 0) {
			t.Fatal("packet", i)
		}
	}
}

func TestEventsRunByTimeThenSequence(t *testing.T) {
	var q events
	for i := range 2000 {
		q.push(event{at: time.Duration(i * 7919 % 50)})
	}
	last := event{at: -1}
	for n := 0; ; n++ {
		e, ok := q.pop(40)
		if !ok {
			if n != 1640 || len(q.heap) != 360 {
				t.Fatal(n, "popped,", len(q.heap), "left")
			}
			return
		}
		if !last.before(&e) || e.at > 40 {
			t.Fatal("after", last.at, last.seq, "came", e.at, e.seq)
		}
		last = e
	}
}
