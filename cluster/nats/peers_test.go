package nats

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/testing/seeds"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

const beat = cluster.Beat

func heartbeat(id string, count int, uptime time.Duration) *clusterv1.Lease {
	return &clusterv1.Lease{Id: id, Term: 1, Count: uint64(count), Uptime: int64(uptime)}
}

// The estimated uptime of another server is never ahead of the true one, and behind by the
// shortest way of the last heartbeats and the drift since, although the clocks differ and drift.
func TestUptimesAreEstimatedFromBelow(t *testing.T) {
	seeds.Each(t, 100, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := peers{beat: beat, all: map[string]*peer{}}
		ahead := time.Duration(r.Int64N(int64(200*time.Hour))) - 100*time.Hour
		drift := (r.Float64() - 0.5) * 2e-4
		// uptime returns the peer's uptime at a time of this server.
		uptime := func(at time.Duration) time.Duration { return ahead + at + time.Duration(float64(at)*drift) }
		now := time.Duration(0)
		for i := range 300 {
			sent := now
			now += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
			p.beatOf(heartbeat("a", i+1, uptime(sent)), now)
			if got, is := p.all["a"].until(now), uptime(now); got > is+beat*2*offsetBeats/5000 || i > 50 && got < is-100*time.Millisecond {
				t.Fatalf("beat %d: %v is estimated as %v", i, is, got)
			}
			now = max(now, sent+beat)
		}
	})
}

// A lease ends by silence that this server has heard: not by a heartbeat that only the store has,
// and not by silence while the store did not hear this server.
func TestSilenceIsCountedWhileHearing(t *testing.T) {
	p := peers{beat: beat, all: map[string]*peer{}}
	p.beatOf(heartbeat("a", 5, 0), 100*beat)
	const since = 0
	for _, c := range []struct {
		count      uint64
		since, now time.Duration
		want       bool
	}{
		{5, since, 110*beat - 1, false},
		{5, since, 110 * beat, true},
		{5, 105 * beat, 114 * beat, false}, // This server was away.
		{5, 105 * beat, 115 * beat, true},
		{6, since, 120 * beat, false}, // A newer heartbeat was stored, and not heard.
		{6, since, 130*beat - 1, false},
		{6, since, 130 * beat, true},
	} {
		if got := p.silent("a", 1, c.count, c.since, c.now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if p.silent("unknown", 1, 7, since, 200*beat) || !p.silent("unknown", 1, 7, since, 210*beat) {
		t.Error("a server that was never heard")
	}
	if len(p.servers(0)) != 1 {
		t.Error("a server that was never heard is listed")
	}
}

func TestServersAreForgotten(t *testing.T) {
	p := peers{beat: beat, all: map[string]*peer{}}
	p.beatOf(heartbeat("a", 1, 0), beat)
	if p.sweep(3 * beat) {
		t.Error("changed without a missed heartbeat")
	}
	if !p.sweep(4*beat) || p.sweep(5*beat) || !p.servers(5 * beat)[0].Suspect {
		t.Error("the suspicion is not reported once")
	}
	if changed, _ := p.beatOf(heartbeat("a", 2, 0), 6*beat); !changed || p.servers(6 * beat)[0].Suspect {
		t.Error("the return is not reported")
	}
	p.beatOf(&clusterv1.Lease{Id: "a", Term: 1, Ended: true, Count: 9}, 30*beat)
	if !p.sweep(20*beat) || p.sweep(65*beat) || !p.sweep(66*beat) || len(p.all) != 0 {
		t.Error("a silent server is not forgotten after a minute, or the end of its lease was heard as its own")
	}
	p.beatOf(heartbeat("b", 1, 0), beat)
	if changed, _ := p.beatOf(&clusterv1.Lease{Id: "b", Left: true}, beat); !changed || len(p.all) != 0 {
		t.Error("a server that has left is listed")
	}
}

// A copy of a board equals the board, although messages are lost, and whole boards and changes
// overtake each other.
func TestBoardsConverge(t *testing.T) {
	seeds.Each(t, 200, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := &own{changed: map[string]bool{}}
		p := peers{beat: beat, all: map[string]*peer{}}
		now, count := time.Duration(0), 0
		var parts [][]byte // on their way
		requests := 0
		tell := func() {
			count++
			if _, want := p.beatOf(&clusterv1.Lease{Id: "a", Term: 1, Count: uint64(count), Board: o.version}, now); want {
				requests++
				parts = o.whole("a")
			}
		}
		take := func() {
			d, err := decodeDirect(parts[0])
			if err != nil {
				t.Fatal(err)
			}
			p.partOf("a", d.GetPart())
			parts = parts[1:]
		}
		tell()
		for range 200 {
			now += 50 * time.Millisecond
			for range r.IntN(5) {
				entry := fmt.Appendf(nil, "%d", r.IntN(100))
				if r.IntN(3) == 0 {
					entry = nil
				}
				o.announce(fmt.Sprint("room/", r.IntN(20)), entry)
			}
			for _, m := range o.changes("a") {
				if r.IntN(10) == 0 {
					continue
				}
				c, err := decodeChanges("a", m)
				if err != nil {
					t.Fatal(err)
				}
				if _, want := p.changes(c, now); want {
					requests++
					parts = o.whole("a")
				}
			}
			if len(parts) > 0 && r.IntN(2) == 0 {
				take()
			}
			if r.IntN(20) == 0 {
				tell()
			}
		}
		for range 3 {
			now += beat
			tell()
			for len(parts) > 0 {
				take()
			}
		}
		if got, want := fmt.Sprint(p.boards(now)[0].Rooms), fmt.Sprint(o.share()); got != want || p.all["a"].board.version != o.version {
			t.Fatalf("the copy %d has\n%s, want %d\n%s", p.all["a"].board.version, got, o.version, want)
		}
		if requests > 30 {
			t.Errorf("the whole board was requested %d times in %v", requests, now)
		}
	})
}

func TestBoardsAreBounded(t *testing.T) {
	b := &board{}
	for i := range cluster.MaxRooms {
		if !b.set(fmt.Sprint(i), nil, false) {
			t.Fatal("room", i, "was refused")
		}
	}
	if b.set("more", nil, false) || !b.set("7", []byte("x"), false) || !b.set("8", nil, true) || !b.set("more", nil, false) {
		t.Error("a board of the most rooms")
	}
	many := parts(make([]*clusterv1.Room, maxPart+1))
	if len(many) != 2 || len(many[0]) != maxPart {
		t.Errorf("%d messages for %d rooms", len(many), maxPart+1)
	}
	large := make([]*clusterv1.Room, 100)
	for i := range large {
		large[i] = &clusterv1.Room{Name: "x", Entry: make([]byte, cluster.MaxEntry)}
	}
	for _, some := range parts(large) {
		if data := encode(&clusterv1.Changes{Id: "a", To: 1, Rooms: some}); len(data) > maxMessage {
			t.Errorf("a message of %d bytes", len(data))
		}
	}
}

// A server of a large cluster joins more changes to a message: all others receive each.
func TestBoardsOfManyServersAreSentLessOften(t *testing.T) {
	for servers, want := range map[int]time.Duration{1: cluster.BoardInterval, 12: cluster.BoardInterval, 100: 400 * time.Millisecond, 1000: time.Second} {
		if got := intervalOf(servers); got != want {
			t.Errorf("%d servers: %v, want %v", servers, got, want)
		}
	}
}
