package match_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/netlooptest"
)

// skill are the properties of a party in these tests.
type skill struct {
	Rating float64
	Joined time.Duration // game time
}

// queueing is a game with a queue.
type queueing struct {
	cfg   match.QueueConfig[skill]
	queue *match.Queue[skill]
	found []match.Match[skill]
	check func(now time.Duration, m match.Match[skill])
}

func (*queueing) Schema() *netloop.Schema { return schema }

func (*queueing) RoomDefaults() netloop.RoomSpec { return netloop.RoomSpec{Rate: netloop.Hz(10)} }

func (g *queueing) Open(r *netloop.Room) error {
	g.cfg.Found = func(t *netloop.Tick, m match.Match[skill]) {
		g.found = append(g.found, m)
		if g.check != nil {
			g.check(t.GameTime(), m)
		}
	}
	g.queue = match.NewQueue(r, g.cfg)
	return nil
}

// byRating are matches of ratings that differ by at most 50, and by ten more for each second of
// waiting.
func byRating(teams, size int) match.QueueConfig[skill] {
	return match.QueueConfig[skill]{
		Teams: teams, TeamSize: size,
		Distance:  func(a, b skill) float64 { return math.Abs(a.Rating - b.Rating) },
		Tolerance: func(waited time.Duration) float64 { return 50 + 10*waited.Seconds() },
		Weight:    func(s skill) float64 { return s.Rating },
	}
}

// For any joins and leaves, matches have whole parties, full teams, no player twice and no party
// beyond its tolerance. In the end no party waits that could play.
func TestMatchesAreWholeFullAndFair(t *testing.T) {
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		teams, size := 1+rnd.IntN(4), 1+rnd.IntN(5)
		g := &queueing{cfg: byRating(teams, size)}
		w := netlooptest.New(t, g)
		parties, played := map[netloop.ClientID][]netloop.ClientID{}, map[netloop.ClientID]bool{}
		g.check = func(now time.Duration, m match.Match[skill]) {
			if len(m.Teams) != teams {
				t.Errorf("seed %d: a match of %d teams", seed, len(m.Teams))
			}
			var all []match.Party[skill]
			for _, team := range m.Teams {
				n := 0
				for _, p := range team {
					n += len(p.Players)
					if !slices.Equal(p.Players, parties[p.Players[0]]) {
						t.Errorf("seed %d: the party %v joined as %v", seed, p.Players, parties[p.Players[0]])
					}
				}
				if n != size {
					t.Errorf("seed %d: a team of %d", seed, n)
				}
				all = append(all, team...)
			}
			for _, a := range all {
				for _, b := range all {
					if d := g.cfg.Distance(a.Properties, b.Properties); d > g.cfg.Tolerance(now-a.Properties.Joined) {
						t.Errorf("seed %d: a distance of %v after %v", seed, d, now-a.Properties.Joined)
					}
				}
			}
			for _, id := range m.Players() {
				if played[id] || parties[id] == nil {
					t.Errorf("seed %d: player %d is matched twice, or had left", seed, id)
				}
				played[id] = true
			}
		}
		next := netloop.ClientID(1)
		for range 200 {
			w.Tick(func(tick *netloop.Tick) {
				for range rnd.IntN(3) {
					n := 1
					if rnd.IntN(3) == 0 {
						n += rnd.IntN(size)
					}
					var p match.Party[skill]
					for range n {
						p.Players = append(p.Players, next)
						next++
					}
					p.Properties = skill{1000 + 300*rnd.NormFloat64(), tick.GameTime()}
					if err := g.queue.Add(tick, p); err != nil {
						t.Fatal(err)
					}
					for _, id := range p.Players {
						parties[id] = p.Players
					}
				}
				if id := netloop.ClientID(rnd.IntN(int(next))); rnd.IntN(10) == 0 && g.queue.Remove(id) {
					for _, mate := range parties[id] {
						delete(parties, mate)
					}
				}
			})
			w.Step(1)
		}
		w.Tick(func(tick *netloop.Tick) { // Single players, who fill each gap.
			for range teams * size * 3 {
				if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{next}, Properties: skill{1000, tick.GameTime()}}); err != nil {
					t.Fatal(err)
				}
				parties[next] = []netloop.ClientID{next}
				next++
			}
		})
		w.Advance(3 * time.Minute)
		if left := g.queue.Len(); left >= teams*size {
			t.Errorf("seed %d: %d players wait for matches of %d", seed, left, teams*size)
		}
		if len(g.found) == 0 || g.queue.Expected() <= 0 {
			t.Errorf("seed %d: %d matches, and an expected wait of %v", seed, len(g.found), g.queue.Expected())
		}
	}
}

// Teams are balanced by weight as well as by size.
func TestTeamsAreBalanced(t *testing.T) {
	g := &queueing{cfg: byRating(2, 2)}
	g.cfg.Tolerance = nil
	w := netlooptest.New(t, g)
	w.Tick(func(tick *netloop.Tick) {
		for i, rating := range []float64{100, 90, 20, 10} {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{netloop.ClientID(i + 1)}, Properties: skill{Rating: rating}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	w.Step(2)
	if len(g.found) != 1 {
		t.Fatalf("%d matches", len(g.found))
	}
	for _, team := range g.found[0].Teams {
		if sum := team[0].Properties.Rating + team[1].Properties.Rating; sum != 110 {
			t.Errorf("a team of %v", sum)
		}
	}
}

// A party that fits into no team is left out, and smaller ones that joined later complete the
// match.
func TestAPartyThatFitsIntoNoTeamIsLeftOut(t *testing.T) {
	g := &queueing{cfg: match.QueueConfig[skill]{Teams: 2, TeamSize: 3}}
	w := netlooptest.New(t, g)
	w.Tick(func(tick *netloop.Tick) {
		next := netloop.ClientID(1)
		for _, size := range []int{2, 2, 2, 1, 1} {
			var p match.Party[skill]
			for range size {
				p.Players = append(p.Players, next)
				next++
			}
			if err := g.queue.Add(tick, p); err != nil {
				t.Error(err)
			}
		}
	})
	w.Step(20)
	if len(g.found) != 1 || slices.Contains(g.found[0].Players(), 5) {
		t.Errorf("matched %+v, want one match without the third party", g.found)
	}
}

// A match takes the oldest parties that fit, also if a party that joined later is searched for.
func TestTheOldestPartiesPlayFirst(t *testing.T) {
	g := &queueing{cfg: byRating(1, 3)}
	g.cfg.Tolerance = func(time.Duration) float64 { return 50 }
	w := netlooptest.New(t, g)
	w.Tick(func(tick *netloop.Tick) {
		// The second party fits only the first one.
		for i, rating := range []float64{1000, 960, 1040, 1040, 1040} {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{netloop.ClientID(i + 1)}, Properties: skill{Rating: rating}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	w.Step(2)
	if len(g.found) != 1 || !slices.Contains(g.found[0].Players(), 1) {
		t.Errorf("matched %+v, want one match with the oldest party", g.found)
	}
}

// A long queue is searched over several ticks, each with bounded work, and parties at both ends of
// it find each other. The expected wait follows the last matches.
func TestALongQueueIsSearchedInSlices(t *testing.T) {
	g := &queueing{cfg: byRating(2, 1)}
	compared := 0
	g.cfg.Distance = func(a, b skill) float64 { compared++; return math.Abs(a.Rating - b.Rating) }
	g.cfg.Tolerance = func(time.Duration) float64 { return 0 }
	w := netlooptest.New(t, g)
	w.Step(1)
	add := func(id int, rating float64) {
		w.Tick(func(tick *netloop.Tick) {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{netloop.ClientID(id)}, Properties: skill{Rating: rating}}); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i := range 1999 {
		add(1+i, float64(1+i))
	}
	add(2000, 1000)
	for range 300 {
		compared = 0
		if w.Step(1); compared > 25_000 {
			t.Fatalf("%d comparisons in a tick", compared)
		}
	}
	if len(g.found) != 1 || !slices.Contains(g.found[0].Players(), 1000) || !slices.Contains(g.found[0].Players(), 2000) {
		t.Fatalf("the matches are %v", g.found)
	}
	first := g.queue.Expected()
	for id := range netloop.ClientID(2001) {
		g.queue.Remove(id)
	}
	for id := range 20 {
		add(3000+id, 1)
	}
	w.Step(300)
	if e := g.queue.Expected(); len(g.found) != 11 || first < 5*time.Second || e >= first || e < time.Second/2 {
		t.Errorf("after %d matches the expected wait is %v, and was %v", len(g.found), e, first)
	}
}

// Parties that the queue cannot hold are refused, and a party leaves the queue when one of its
// players leaves the room.
func TestTheQueueRefusesAndForgets(t *testing.T) {
	g := &queueing{cfg: match.QueueConfig[skill]{Teams: 2, TeamSize: 2, MaxParties: 2}}
	w := netlooptest.New(t, g)
	c := w.Join("", nil, netlooptest.Link{})
	w.Step(5)
	w.Tick(func(tick *netloop.Tick) {
		var here netloop.ClientID
		for c := range tick.Clients() {
			here = c.ID()
		}
		add := func(ids ...netloop.ClientID) error { return g.queue.Add(tick, match.Party[skill]{Players: ids}) }
		for _, c := range []struct {
			ids  []netloop.ClientID
			want error
		}{{[]netloop.ClientID{here, 99}, nil}, {[]netloop.ClientID{99}, match.ErrWaiting}, {[]netloop.ClientID{5}, nil}, {[]netloop.ClientID{6}, match.ErrQueueFull}} {
			if err := add(c.ids...); !errors.Is(err, c.want) {
				t.Errorf("Add of %v: %v, want %v", c.ids, err, c.want)
			}
		}
		if add() == nil || add(7, 8, 9) == nil {
			t.Error("a party of a wrong size waits")
		}
		if !g.queue.Remove(5) || g.queue.Remove(5) || add(7, 7) == nil {
			t.Error("a party is removed twice, or has a player twice")
		}
	})
	if n := g.queue.Len(); n != 2 {
		t.Fatalf("%d players wait", n)
	}
	_ = c.Close()
	w.Step(10)
	if n := g.queue.Len(); n != 0 {
		t.Errorf("%d players wait, after one of the party has left", n)
	}
	// Parties that have left take no places, whether a search has run since or not.
	for i := range 10 {
		w.Tick(func(tick *netloop.Tick) {
			for id := range netloop.ClientID(5) {
				if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{id}}); err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 || id < 4 {
					g.queue.Remove(id)
				}
			}
		})
		w.Step(1)
		g.queue.Remove(4)
	}
	g = &queueing{cfg: match.QueueConfig[skill]{Teams: 16, TeamSize: 64}}
	netlooptest.New(t, g).Tick(func(tick *netloop.Tick) {
		for id := range netloop.ClientID(10_001) {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{id}}); errors.Is(err, match.ErrQueueFull) != (id == 10_000) {
				t.Fatalf("party %d: %v", id, err)
			}
		}
	})
}

// A queue needs a shape of its matches, and Found.
func TestAQueueNeedsAShape(t *testing.T) {
	found := func(*netloop.Tick, match.Match[skill]) {}
	for _, c := range []match.QueueConfig[skill]{
		{TeamSize: 1, Found: found}, {Teams: 17, TeamSize: 1, Found: found}, {Teams: 1, Found: found}, {Teams: 1, TeamSize: 65, Found: found}, {Teams: 1, TeamSize: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewQueue accepts %d teams of %d", c.Teams, c.TeamSize)
				}
			}()
			match.NewQueue(nil, c)
		}()
	}
}

// The expected wait begins with that of the first party, and takes a tenth of each later one.
// Without functions all parties fit.
func TestTheExpectedWait(t *testing.T) {
	g := &queueing{cfg: match.QueueConfig[skill]{Teams: 2, TeamSize: 1}}
	w := netlooptest.New(t, g)
	w.Step(1)
	id := netloop.ClientID(0)
	add := func() {
		w.Tick(func(tick *netloop.Tick) {
			id++
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{id}}); err != nil {
				t.Fatal(err)
			}
		})
		w.Step(1)
	}
	for _, c := range []struct{ waited, want time.Duration }{{time.Second, time.Second}, {2 * time.Second, 1009 * time.Millisecond}} {
		add()
		w.Advance(c.waited - 100*time.Millisecond)
		if add(); g.queue.Expected() != c.want {
			t.Errorf("after a wait of %v the expected one is %v, want %v", c.waited, g.queue.Expected(), c.want)
		}
	}
}

// crowd adds parties of one player with ratings of 0 to 3 000.
func crowd(tb testing.TB, w *netlooptest.World, g *queueing, parties int) {
	rnd := rand.New(rand.NewPCG(7, 7))
	w.Tick(func(tick *netloop.Tick) {
		for i := range parties {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{netloop.ClientID(i + 1)}, Properties: skill{Rating: 3000 * rnd.Float64()}}); err != nil {
				tb.Fatal(err)
			}
		}
	})
}

// 10 000 players who come at once play within seconds, for few comparisons: BenchmarkCrowd measures
// their time.
func TestACrowdIsMatchedWithFewComparisons(t *testing.T) {
	for _, teams := range []int{2, 10} {
		g := &queueing{cfg: byRating(teams, 1)}
		compared, distance := 0, g.cfg.Distance
		g.cfg.Distance = func(a, b skill) float64 { compared++; return distance(a, b) }
		w := netlooptest.New(t, g)
		crowd(t, w, g, 10_000)
		for w.Step(1); g.queue.Len() > 100 && w.GameTime() < 20*time.Second; w.Step(1) {
		}
		if g.queue.Len() > 100 || compared > 2_000_000 {
			t.Errorf("%d players still wait, and %d comparisons were made", g.queue.Len(), compared)
		}
	}
}

// A queue of 10 000 parties is searched in slices: BenchmarkQueue measures a whole search in which
// no party finds a mate, the worst case.
func BenchmarkQueue(b *testing.B) {
	g := &queueing{cfg: byRating(2, 1)}
	g.cfg.Tolerance = func(time.Duration) float64 { return 0 }
	w := netlooptest.New(b, g)
	w.Tick(func(tick *netloop.Tick) {
		for i := range 10_000 {
			if err := g.queue.Add(tick, match.Party[skill]{Players: []netloop.ClientID{netloop.ClientID(i + 1)}, Properties: skill{Rating: float64(i)}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for b.Loop() {
		w.Step(120)
	}
}

// In a crowd that others join all the time no party of any size waits for long: the oldest one
// chooses first, and parties that come during a round are searched in the next one. Ratings are
// far apart in every other crowd: a thousand players wait until their tolerance has widened, and a
// search tries a part of them.
func TestNoPartyIsPassedOver(t *testing.T) {
	long := 0
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		g := &queueing{cfg: byRating(1+rnd.IntN(4), 1+rnd.IntN(3))}
		spread := 1000.0
		if seed%2 == 1 {
			spread = 10_000
		}
		joined, id := map[netloop.ClientID]time.Duration{}, netloop.ClientID(0)
		g.check = func(_ time.Duration, m match.Match[skill]) {
			for _, p := range m.Players() {
				delete(joined, p)
			}
		}
		w := netlooptest.New(t, g)
		longest, most := time.Duration(0), 0
		for range 600 {
			w.Tick(func(tick *netloop.Tick) {
				for range 40 / g.cfg.TeamSize {
					p := match.Party[skill]{Properties: skill{Rating: spread * rnd.Float64()}}
					// More than half are single players: these fill each gap.
					for range 1 + rnd.IntN(g.cfg.TeamSize)*rnd.IntN(2) {
						id++
						joined[id] = tick.GameTime()
						p.Players = append(p.Players, id)
					}
					if err := g.queue.Add(tick, p); err != nil {
						t.Fatal(err)
					}
				}
			})
			w.Step(1)
			most = max(most, g.queue.Len())
			for _, since := range joined {
				longest = max(longest, w.GameTime()-since)
			}
		}
		long = max(long, most)
		if longest > 25*time.Second {
			t.Errorf("seed %d: %d teams of %d: a party waits %v", seed, g.cfg.Teams, g.cfg.TeamSize, longest)
		}
	}
	if long < 1000 {
		t.Errorf("the longest queue has %d players", long)
	}
}

// BenchmarkCrowd measures all ticks until 10 000 players have a match of two.
func BenchmarkCrowd(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		g := &queueing{cfg: byRating(2, 1)}
		w := netlooptest.New(b, g)
		crowd(b, w, g, 10_000)
		b.StartTimer()
		for w.Step(1); g.queue.Len() > 100; w.Step(1) {
		}
	}
}
