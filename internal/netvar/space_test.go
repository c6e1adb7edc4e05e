package netvar

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/grid"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// plane is a world of rocks in a space, with clients that have their number as Handle.
type plane struct {
	schema
	w     *World
	space *interest.Space
	shape grid.Shape
	tick  uint64
}

func newPlane(tb testing.TB, cell, radius, margin float64, own bool) *plane {
	tb.Helper()
	p := &plane{schema: newSchema(tb)}
	p.w = NewWorld(p.table)
	var err error
	if p.shape, err = grid.NewShape(cell, radius, margin); err != nil {
		tb.Fatal(err)
	}
	var owner func(uint64) *interest.Viewer
	if own {
		owner = func(owner uint64) *interest.Viewer {
			if i := slices.IndexFunc(p.w.peers, func(p *Peer) bool { return p.Handle.(uint64) == owner }); i >= 0 {
				return &p.w.peers[i].Viewer
			}
			return nil
		}
	}
	if p.space, err = p.w.NewSpace(p.shape, owner); err != nil {
		tb.Fatal(err)
	}
	if err := p.space.Hold(p.rock, rockAt); err != nil {
		tb.Fatal(err)
	}
	return p
}

func rockAt(live unsafe.Pointer) (x, y, z float64) {
	r := (*rock)(live)
	return float64(r.X), float64(r.Y), 0
}

func (p *plane) join(id uint64) *Peer {
	c := p.w.NewPeer(p.tick + 1)
	c.Handle = id
	return c
}

func (p *plane) step() { p.tick++; p.w.Capture(p.tick) }

func (p *plane) moveTo(o *state.Object, x, y int32) {
	p.w.Edit(o)
	live[rock](o).X, live[rock](o).Y = x, y
}

// sightOf moves a rock along x, and returns for each step whether its only client sees it.
func sightOf(p *plane, c *Peer, o *state.Object, xs ...int32) (s string) {
	for _, x := range xs {
		p.moveTo(o, x, 0)
		p.step()
		if c.Shows(o) {
			s += "+"
		} else {
			s += "-"
		}
	}
	return s
}

// TestASpaceShowsNearObjects: an object within the radius appears, and disappears when it has left
// it by more than the margin; at the border it does not flicker, from any direction.
func TestASpaceShowsNearObjects(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	c := p.join(1)
	o := p.spawnRock(p.w, rock{X: 500}, 1)
	if got := sightOf(p, c, o, 0); got != "-" {
		t.Errorf("without an eye the client sees %s", got)
	}
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: 5})
	// Gaps of cells of 10 around [0, 10): 30 is inside, 40 and 50 the border.
	if got := sightOf(p, c, o, 500, 65, 55, 49, 55, 49, 65, 69, 70, 69, 55, 49, 5); got != "---+++++---++" {
		t.Errorf("seen %s", got)
	}
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: 5}, interest.Viewpoint{X: 1000, Y: 3})
	if got := sightOf(p, c, o, 1000, 500, -25); got != "+-+" {
		t.Errorf("with two eyes: seen %s", got)
	}
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: 1000})
	p.step()
	if c.Shows(o) {
		t.Error("seen by an eye that was taken away")
	}
	if other := p.spawnShip(p.w, ship{}, 0, 1); !c.Shows(other) {
		t.Error("what lies in no space is hidden by it")
	}
}

// An object that enters the range of a client, or is in it when the client joins, has that tick as
// its version: the time of earlier changes is secret.
func TestAnObjectThatComesNearDoesNotTellWhenItChanged(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	far := p.join(1)
	p.space.SetViewpoints(&far.Viewer, interest.Viewpoint{X: 500})
	o := p.spawnRock(p.w, rock{}, 1)
	p.step()
	p.moveTo(o, 1, 0)
	for range 5 {
		p.step()
	}
	joiner := p.join(2)
	for _, c := range []*Peer{far, joiner} {
		p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: 5})
	}
	p.step()
	for _, c := range []*Peer{far, joiner} {
		r := replica.New(p.table)
		packets, _ := snap(c, p.tick, wide)
		mustApply(t, r, c, packets...)
		if got, ok := r.Get(o.ID()); !ok || got.Changed() != p.tick || o.Changed() != 2 {
			t.Errorf("client %v has %+v at tick %d; it changed at %d", c.Handle, got, p.tick, o.Changed())
		}
	}
}

// TestEyesFollowTheirObject: an eye keeps the last position of a dead object.
func TestEyesFollowTheirObject(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	c := p.join(1)
	body, o := p.spawnRock(p.w, rock{}, 1), p.spawnRock(p.w, rock{X: 1000}, 1)
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{Object: body})
	p.step()
	if !c.Shows(body) || c.Shows(o) {
		t.Errorf("sees itself %v, far away %v", c.Shows(body), c.Shows(o))
	}
	p.moveTo(body, 1000, 0)
	p.step()
	if !c.Shows(o) || !c.Shows(body) {
		t.Error("the eye did not follow")
	}
	p.moveTo(body, 2000, 0) // both at once: no spawn or despawn
	p.moveTo(o, 2000, 0)
	before := *p.w.Stats()
	p.step()
	if st := p.w.Stats(); !c.Shows(o) || !c.Shows(body) || st.Hidden != before.Hidden || st.Shown != before.Shown {
		t.Errorf("moving together: %d hidden, %d shown", st.Hidden-before.Hidden, st.Shown-before.Shown)
	}
	p.w.Despawn(body)
	p.step()
	again := p.spawnRock(p.w, rock{X: 9000}, p.tick) // in the slot of the body
	p.step()
	if !c.Shows(o) || c.Shows(again) {
		t.Error("the eye of a body that is gone does not stay")
	}
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{Object: body})
	p.step()
	if c.Shows(o) || c.Shows(again) {
		t.Error("an eye in what is gone sees")
	}
}

// TestOwnersSeeTheirObjects: at any distance, if the space says so; and from the tick on in which
// they become owners.
func TestOwnersSeeTheirObjects(t *testing.T) {
	for _, own := range []bool{true, false} {
		p := newPlane(t, 10, 30, 20, own)
		c := p.join(7)
		o := p.spawnRock(p.w, rock{X: 1000}, 1)
		p.step()
		p.w.SetOwner(o, 7)
		p.step()
		if c.Shows(o) != own {
			t.Errorf("own %v: shows %v", own, c.Shows(o))
		}
		p.w.ClosePeer(c) // A client is in the world once.
		if c = p.join(7); c.Shows(o) != own {
			t.Errorf("own %v: a joiner is shown it: %v", own, c.Shows(o))
		}
		p.w.SetOwner(o, 8)
		p.step()
		if c.Shows(o) {
			t.Error("shown after it was given away")
		}
	}
}

// TestAClosedPeerLeavesNoEyes: a closed peer cannot get eyes any more, and no objects are judged
// for it.
func TestAClosedPeerLeavesNoEyes(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	o := p.spawnRock(p.w, rock{}, 1)
	for range 20 {
		c := p.join(1)
		p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{}, interest.Viewpoint{X: 5})
		p.step()
		if !c.Shows(o) {
			t.Fatal("the client does not see what is at its eye")
		}
		before := *p.w.Stats()
		p.w.ClosePeer(c)
		p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{}, interest.Viewpoint{}, interest.Viewpoint{})
		p.step()
		if st := p.w.Stats(); st.Judged != before.Judged || st.Hidden != before.Hidden {
			t.Fatalf("%d pairs are judged for who has gone", st.Judged-before.Judged)
		}
	}
}

func TestBadPositionsAreCounted(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	c := p.join(1)
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: math.NaN()}, interest.Viewpoint{Y: math.Inf(1)})
	o := p.spawnRock(p.w, rock{X: math.MinInt32}, 1)
	p.step()
	if n := p.w.stats.BadPositions; n != 3 { // two eyes, and a rock further out than 2^20 cells
		t.Errorf("%d bad positions, want 3", n)
	}
	if !c.Shows(o) {
		t.Error("what has no place does not lie in the border cell")
	}
}

func TestASpaceIsForItsClasses(t *testing.T) {
	p := newPlane(t, 10, 30, 20, false)
	if err := p.space.Hold(p.rock, rockAt); err == nil {
		t.Error("a class lies in two spaces")
	}
	p.spawnShip(p.w, ship{}, 0, 1)
	if err := p.space.Hold(p.ship, rockAt); err == nil {
		t.Error("a class with objects is put into a space")
	}
	for range interest.MaxSpaces - 1 {
		if _, err := p.w.NewSpace(p.shape, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.w.NewSpace(p.shape, nil); err == nil {
		t.Errorf("more than %d spaces", interest.MaxSpaces)
	}
}

// roamer is a client of a random walk, with its replica.
type roamer struct {
	p    *Peer
	r    *replica.Replica
	eyes []interest.Viewpoint
	seen map[state.ID]bool // by the rules, from a check of every pair
}

// TestRandomWalksMatchTheRules compares the objects of clients with a mirror that checks every
// pair of object and eye in every tick: objects and eyes walk and jump, spawn and despawn, change
// owners and audiences, clients join and leave, and packets are lost.
func TestRandomWalksMatchTheRules(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { roam(t, rand.New(rand.NewPCG(seed, 5))) })
	}
}

// some is an audience of the clients with numbers of this remainder.
type some struct{ mod, rest uint64 }

func (s some) Includes(p *interest.Viewer) bool { return p.Handle.(uint64)%s.mod == s.rest }

// club is an audience with changing members, each of which is judged individually.
type club struct{ members map[*interest.Viewer]bool }

func (c *club) Includes(p *interest.Viewer) bool { return c.members[p] }

func (c *club) toggle(w *World, p *Peer) {
	c.members[&p.Viewer] = !c.members[&p.Viewer]
	for o := range w.Guarded {
		if w.Audience(o) == c {
			w.RecheckFor(o, &p.Viewer)
		}
	}
}

func roam(t *testing.T, rng *rand.Rand) {
	p := newPlane(t, 5, 20+rng.Float64()*10, 10+rng.Float64()*10, true)
	var rocks []*state.Object
	var roamers []*roamer
	number := uint64(0)
	place := func() int32 { return rng.Int32N(150) }
	clubs := []*club{{members: map[*interest.Viewer]bool{}}, {members: map[*interest.Viewer]bool{}}}
	spawn := func() *state.Object {
		o := p.spawnRock(p.w, rock{X: place(), Y: place()}, p.tick+1)
		switch rng.IntN(6) {
		case 0:
			p.w.SetOwner(o, number-rng.Uint64N(min(number, 4)+1))
		case 1:
			p.w.SetAudience(o, some{2, rng.Uint64N(2)})
		case 2:
			p.w.SetAudience(o, clubs[rng.IntN(2)])
		}
		return o
	}
	for p.tick < 250 {
		for len(rocks) < 25 {
			rocks = append(rocks, spawn())
		}
		for len(roamers) < 4 {
			number++
			c := &roamer{p: p.join(number), r: replica.New(p.table), seen: map[state.ID]bool{}}
			c.r.StartAt(p.tick)
			roamers = append(roamers, c)
		}
		if p.tick < 200 {
			for i, o := range rocks {
				switch rng.IntN(60) {
				case 0:
					p.w.Despawn(o)
					rocks[i] = spawn()
				case 1:
					p.w.SetOwner(o, number-rng.Uint64N(min(number, 4)))
				case 2:
					p.w.SetAudience(o, some{2, rng.Uint64N(2)})
				case 3:
					p.w.SetAudience(o, nil)
				case 4:
					p.moveTo(o, place(), place())
				case 16:
					p.w.SetAudience(o, clubs[rng.IntN(2)])
				case 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15:
					p.moveTo(o, live[rock](o).X+rng.Int32N(9)-4, live[rock](o).Y+rng.Int32N(9)-4)
				}
			}
			for i, c := range roamers {
				switch rng.IntN(40) {
				case 0:
					p.w.ClosePeer(c.p)
					number++
					roamers[i] = &roamer{p: p.join(number), r: replica.New(p.table), seen: map[state.ID]bool{}}
					roamers[i].r.StartAt(p.tick)
				case 1, 2, 3, 4, 5:
					c.eyes = nil
					for range rng.IntN(4) {
						e := interest.Viewpoint{X: float64(place()), Y: float64(place())}
						if rng.IntN(2) == 0 {
							e = interest.Viewpoint{Object: rocks[rng.IntN(len(rocks))]}
						}
						c.eyes = append(c.eyes, e)
					}
					p.space.SetViewpoints(&c.p.Viewer, c.eyes...)
				case 6, 7, 8: // possibly to and fro
					clubs[rng.IntN(2)].toggle(p.w, roamers[rng.IntN(4)].p)
				}
				for _, o := range rocks { // the mirror records new positions first
					if a, ok := p.w.Audience(o).(*club); ok && !a.Includes(&roamers[i].p.Viewer) && roamers[i].p.Shows(o) {
						t.Fatalf("client %v observes rock %v of a club that it is not in", roamers[i].p.Handle, o.ID())
					}
				}
			}
		}
		p.step()
		for _, c := range roamers {
			c.look(t, p, rocks)
			packets, _ := snap(c.p, p.tick, wide)
			if rng.Float64() > 0.2 || p.tick > 240 {
				mustApply(t, c.r, c.p, packets...)
			}
		}
	}
	for i, c := range roamers {
		for _, o := range rocks {
			got, has := c.r.Get(o.ID())
			if has != c.seen[o.ID()] || has && *live[rock](got) != *live[rock](o) {
				t.Errorf("client %d has rock %v: %v, want %v", i, o.ID(), has, c.seen[o.ID()])
			}
		}
		c.p.RequestDigest(1)
	}
	p.step()
	for i, c := range roamers {
		packets, _ := snap(c.p, p.tick, wide)
		mustApply(t, c.r, c.p, packets...)
		if state, _ := c.r.Digest(); state != replica.DigestEqual {
			t.Errorf("client %d: digest %d", i, state)
		}
	}
}

// look updates the mirror by a tick, and compares.
func (c *roamer) look(t *testing.T, p *plane, rocks []*state.Object) {
	t.Helper()
	cell := func(x, y float64) grid.Cell { at, _ := p.shape.Cell(x, y, 0); return at }
	for i, e := range c.eyes { // an eye keeps the last position of its object
		if e.Object != nil {
			c.eyes[i].X, c.eyes[i].Y = float64(live[rock](e.Object).X), float64(live[rock](e.Object).Y)
		}
	}
	for _, o := range rocks {
		nearest := grid.Outside
		for _, e := range c.eyes {
			nearest = max(nearest, p.shape.Zone(cell(e.X, e.Y), cell(float64(live[rock](o).X), float64(live[rock](o).Y))))
		}
		may := nearest == grid.Inside || nearest == grid.Border && c.seen[o.ID()] || o.Owner() == c.p.Handle.(uint64)
		if a := p.w.Audience(o); a != nil && !a.Includes(&c.p.Viewer) {
			may = false
		}
		if c.seen[o.ID()] = may; c.p.Shows(o) != may {
			t.Fatalf("tick %d: client %v shows rock %v: %v, want %v (zone %d)", p.tick, c.p.Handle, o.ID(), !may, may, nearest)
		}
	}
}

// walkers is a world of 10 000 rocks in a plane of 2 000 × 2 000, with 200 clients that each have
// an eye in a rock.
func walkers(tb testing.TB) (p *plane, rocks []*state.Object) {
	p = newPlane(tb, 50, 100, 100, true)
	for i := range int32(10_000) {
		rocks = append(rocks, p.spawnRock(p.w, rock{X: i % 100 * 20, Y: i / 100 * 20}, 1))
	}
	for i := range 200 {
		p.space.SetViewpoints(&p.join(uint64(i+1)).Viewer, interest.Viewpoint{Object: rocks[i*50]})
	}
	p.step()
	p.step()
	return p, rocks
}

// walk moves one rock in a hundred by a distance, different ones in each tick.
func (p *plane) walk(rocks []*state.Object, by int32) {
	for i := int(p.tick % 100); i < len(rocks); i += 100 {
		x := live[rock](rocks[i]).X + by
		p.moveTo(rocks[i], x%2000, live[rock](rocks[i]).Y)
	}
}

// TestASpaceChecksOnlyChangedCells: 10 000 objects and 200 clients make two million pairs, of
// which a tick checks only those that may have become visible or hidden.
func TestASpaceChecksOnlyChangedCells(t *testing.T) {
	p, rocks := walkers(t)
	cost := func(by int32) (cells, pairs, judged uint64) {
		c, s := p.space.Cost()
		j := p.w.stats.Judged
		p.walk(rocks, by)
		p.step()
		cells, pairs = p.space.Cost()
		return cells - c, pairs - s, p.w.stats.Judged - j
	}
	if cells, pairs, judged := cost(0); cells+pairs+judged != 0 {
		t.Errorf("100 edited and none moved: %d cells, %d pairs, %d judged", cells, pairs, judged)
	}
	cells, pairs, judged := uint64(0), uint64(0), uint64(0)
	for range 100 {
		a, b, c := cost(50) // each into the next cell, 2 with an eye
		cells, pairs, judged = cells+a, pairs+b, judged+c
	}
	// The reach is 5 cells: 11² around each moved one. About 15 of 200 clients are near.
	if perTick := cells / 100; perTick > 102*11*11 {
		t.Errorf("%d cells a tick", perTick)
	}
	if judged/100 > 10_000*200/400 || judged > pairs || judged == 0 {
		t.Errorf("a tick suspects %d pairs and judges %d, of 2 000 000", pairs/100, judged/100)
	}
	t.Logf("a tick visits %d cells and judges %d pairs", cells/100, judged/100)
}

// TestASpawnChecksNearClients: of 200 clients those with an eye near it are checked, once for any
// number of eyes, and the owner.
func TestASpawnChecksNearClients(t *testing.T) {
	p, rocks := walkers(t)
	spawn := func(x, y int32) (judged uint64, o *state.Object) {
		before := p.w.stats.Judged
		o = p.spawnRock(p.w, rock{X: x, Y: y}, p.tick+1)
		p.step()
		return p.w.stats.Judged - before, o
	}
	near := 0
	for i := range 200 {
		at := live[rock](rocks[i*50])
		if p.shape.Zone(grid.Cell{X: at.X / 50, Y: at.Y / 50}, grid.Cell{X: 20, Y: 20}) == grid.Inside {
			near++
		}
	}
	if judged, _ := spawn(1000, 1000); near == 0 || judged != uint64(near) {
		t.Errorf("%d clients are asked, %d are near", judged, near)
	}
	if judged, _ := spawn(-5000, 0); judged != 0 {
		t.Errorf("%d clients are asked about what is near nobody", judged)
	}
	c := p.w.peers[7]
	p.space.SetViewpoints(&c.Viewer, interest.Viewpoint{X: -5000}, interest.Viewpoint{X: -5010}, interest.Viewpoint{X: -5020})
	p.step()
	if judged, o := spawn(-5000, 0); judged != 1 || !c.Shows(o) {
		t.Errorf("%d questions for a client with three eyes there, shown: %v", judged, c.Shows(o))
	}
	o := p.spawnRock(p.w, rock{X: 50_000}, p.tick+1)
	p.w.SetOwner(o, 3)
	before := p.w.stats.Judged
	if p.step(); p.w.stats.Judged-before != 1 || !p.w.peers[2].Shows(o) {
		t.Errorf("%d questions for what only its owner sees", p.w.stats.Judged-before)
	}
}

func TestASpaceDoesNotAllocate(t *testing.T) {
	p := newPlane(t, 50, 100, 100, true)
	var rocks []*state.Object
	for i := range int32(400) {
		rocks = append(rocks, p.spawnRock(p.w, rock{X: i % 20 * 20, Y: i / 20 * 20}, 1))
	}
	var peers []*Peer
	for i := range 10 {
		peers = append(peers, p.join(uint64(i+1)))
		p.space.SetViewpoints(&peers[i].Viewer, interest.Viewpoint{Object: rocks[i*40]})
	}
	round := func() {
		for i, o := range rocks {
			if i%4 == int(p.tick%4) {
				p.moveTo(o, (live[rock](o).X+35)%400, live[rock](o).Y)
			}
		}
		p.step()
	}
	for range 3 * state.Horizon {
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if p.w.stats.Shown == 0 || p.w.stats.Hidden == 0 {
		t.Error("nothing came or went")
	}
}

// BenchmarkSpace10000x200: one object in a hundred moves by 5 units a tick, a tenth of a cell.
func BenchmarkSpace10000x200(b *testing.B) {
	p, rocks := walkers(b)
	b.ReportAllocs()
	judged := p.w.stats.Judged
	for b.Loop() {
		p.walk(rocks, 5)
		p.step()
	}
	b.ReportMetric(float64(p.w.stats.Judged-judged)/float64(b.N), "pairs/tick")
}
