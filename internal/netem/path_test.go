package netem

import (
	"math"
	"testing"
	"time"
)

func TestPerfectLinkDeliversAtOnce(t *testing.T) {
	p := NewPath(Link{}, 1, 1)
	if tr := p.Send(5*ms, 1000); tr.Copies != 1 || tr.At[0] != 5*ms {
		t.Fatalf("%+v", tr)
	}
}

func TestDelayAndJitterStayWithinTheirBounds(t *testing.T) {
	p := NewPath(Link{Delay: 30 * ms, Jitter: 10 * ms}, 1, 1)
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		at := p.Send(0, 1000).At[0]
		least, most = min(least, at), max(most, at)
	}
	if least < 30*ms || least > 31*ms || most > 40*ms || most < 39*ms {
		t.Fatal(least, most)
	}
}

// TestBandwidthIsExact checks that no packet is early and none is lost below it.
func TestBandwidthIsExact(t *testing.T) {
	p := NewPath(Link{Bandwidth: 80_000, Buffer: 10 * time.Second}, 1, 1)
	for i := range 100 {
		want := time.Duration(i+1) * 100 * ms // 1000 bytes at 80 kbit/s
		if tr := p.Send(0, 1000); tr.Copies != 1 || tr.At[0] != want {
			t.Fatalf("packet %d: %+v, want %v", i, tr, want)
		}
	}
	if got := p.Backlog(4 * time.Second); got != 6*time.Second {
		t.Fatal("backlog", got)
	}
}

func TestRouterDropsBeyondItsBuffer(t *testing.T) {
	for _, c := range []struct {
		buffer time.Duration
		want   int
	}{{500 * ms, 6}, {0, 3}, {1500 * ms, 16}} {
		p := NewPath(Link{Bandwidth: 80_000, Buffer: c.buffer}, 1, 1)
		passed, tail := 0, 0
		for range 40 {
			tr := p.Send(0, 1000)
			passed += tr.Copies
			if tr.Tail {
				tail++
			}
		}
		if passed != c.want || tail != 40-c.want {
			t.Errorf("buffer %v: %d passed, want %d; %d dropped", c.buffer, passed, c.want, tail)
		}
		if tr := p.Send(100*ms, 1000); tr.Copies != 1 {
			t.Errorf("buffer %v: no room although one packet has left", c.buffer)
		}
	}
}

func TestSharesMatchTheSpec(t *testing.T) {
	const n = 200_000
	p := NewPath(Link{Loss: 0.05, Duplicate: 0.02, Reorder: 0.1}, 7, 1)
	var lost, twice, late float64
	for range n {
		tr := p.Send(0, 100)
		switch tr.Copies {
		case 0:
			lost++
			continue
		case 2:
			twice++
			if tr.At[1] < tr.At[0] || tr.At[1] > tr.At[0]+duplicateDelay {
				t.Fatal("the copy arrived", tr.At[1]-tr.At[0], "after")
			}
		}
		if tr.At[0] > 0 {
			late++
		}
	}
	for name, got := range map[string][2]float64{"lost": {lost / n, 0.05}, "twice": {twice / (n - lost), 0.02}, "late": {late / (n - lost), 0.1}} {
		if math.Abs(got[0]-got[1]) > 0.003 {
			t.Errorf("%s: %.4f, want %.4f", name, got[0], got[1])
		}
	}
}

func TestLostPacketsUseBandwidth(t *testing.T) {
	p := NewPath(Link{Bandwidth: 80_000, Loss: 1}, 1, 1)
	p.Send(0, 1000)
	if p.Backlog(0) != 100*ms {
		t.Fatal(p.Backlog(0))
	}
}

// TestRandomResultsOfFeaturesAreIndependent checks that switching a feature on does not change
// the random results of the others.
func TestRandomResultsOfFeaturesAreIndependent(t *testing.T) {
	plain, busy := NewPath(Link{Loss: 0.3}, 3, 1), NewPath(Link{Loss: 0.3, Jitter: 5 * ms, Duplicate: 0.5, Reorder: 0.5}, 3, 1)
	for i := range 1000 {
		a, b := plain.Send(0, 100), busy.Send(0, 100)
		if (a.Copies == 0) != (b.Copies == 0) {
			t.Fatal("packet", i)
		}
	}
}
