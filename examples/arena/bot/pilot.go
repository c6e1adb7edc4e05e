package bot

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
)

// The parameters of a pilot. Angles are radians, distances units of the arena.
const (
	thinkEvery = 100 * time.Millisecond
	fireEvery  = time.Second
	sayEvery   = 60 * time.Second // on average

	steady    = 0.03 // a smaller error of the heading is ignored
	forward   = 0.8  // the engine runs only below this error of the heading
	rockSense = 160  // distance from a rock's edge
	fireRange = 700
	fireNear  = 10 // distance of the line of fire from a ship's centre
	turnRate  = 3  // of a ship, in a second
)

// pilot is one bot in its ship.
type pilot struct {
	client *client.Client
	rand   *rand.Rand
	feel   feel
	senses senses
	blind  bool // its client reads no state

	ship    *netloop.Object[arena.Ship] // its own; nil until it has spawned
	ships   seen[arena.Ship]            // the others
	rocks   seen[arena.Rock]
	pickups seen[arena.Pickup]
	enemy   *netloop.Object[arena.Ship] // its target; nil: none
	heard   int                         // lines of chat

	// Due times, in game time. Zero: not begun.
	think, fire, say time.Duration

	turn   time.Duration // the remaining time of a turn
	thrust bool
	left   bool // of the turn
}

// meet and part distinguish the pilot's own ship from the others.
func (p *pilot) meet(o *netloop.Object[arena.Ship]) {
	if o.Owner() == p.client.ID() {
		p.ship = o
		return
	}
	p.ships.add(o)
}

func (p *pilot) part(o *netloop.Object[arena.Ship]) {
	if o == p.ship {
		p.ship = nil
		return
	}
	p.ships.remove(o)
	if o == p.enemy {
		p.enemy = nil
	}
}

func (p *pilot) hear(*arenav1.Said) { p.heard++ }

// control returns the pilot's input of a fixed step. It decides ten times a second, and repeats its
// decision in between.
func (p *pilot) control(t *netloop.Tick) (in arena.Control) {
	if p.ship == nil {
		if p.blind {
			return p.wander(t.GameTime())
		}
		return in
	}
	me, ok := client.PredictedState(p.client, p.ship)
	if !ok {
		me = p.ship.State()
	}
	now := t.GameTime()
	if p.think == 0 {
		p.begin(now)
	}
	if now >= p.think {
		p.think = now + thinkEvery
		p.decide(me, now)
	}
	in.Thrust = p.thrust
	if p.turn >= t.Delta()/2 {
		p.turn -= t.Delta()
		in.Turn = 1
		if p.left {
			in.Turn = -1
		}
	}
	if now >= p.fire && p.aimed(me) {
		p.fire = now + fireEvery
		in.Fire = true
	}
	return in
}

// wander returns random input for the ship of a client that reads no state. The input changes about
// as often as that of a pilot with a view.
func (p *pilot) wander(now time.Duration) (in arena.Control) {
	if now >= p.think {
		p.think = now + thinkEvery
		p.thrust, p.left, p.turn = p.rand.IntN(4) > 0, p.rand.IntN(2) == 0, time.Duration(p.rand.IntN(2))
	}
	in.Thrust = p.thrust
	if p.turn > 0 {
		in.Turn = 1
		if p.left {
			in.Turn = -1
		}
	}
	if now >= p.fire {
		p.fire = now + p.soon(10*fireEvery)
		in.Fire = true
	}
	return in
}

// decide sets the course, and sometimes sends a line of chat.
func (p *pilot) decide(me arena.Ship, now time.Duration) {
	p.enemy = nil
	if now >= p.fire {
		p.enemy = p.nearest(me)
	}
	off := angle(p.course(me) - float64(me.Heading))
	p.thrust, p.left, p.turn = math.Abs(off) < forward, off < 0, 0
	if math.Abs(off) > steady {
		p.turn = time.Duration(math.Abs(off) / turnRate * float64(time.Second))
	}
	if now >= p.say {
		p.say = now + p.soon(sayEvery)
		client.Send(p.client, arena.Say, &arenav1.Say{Text: lines[p.rand.IntN(len(lines))]})
	}
}

// begin draws the pilot's phases, so that pilots do not act all at once.
func (p *pilot) begin(now time.Duration) {
	p.think = now + time.Duration(p.rand.Int64N(int64(thinkEvery)))
	p.say = now + time.Duration(p.rand.Int64N(int64(sayEvery)))
}

// soon returns a random time around d, from half of it to one and a half.
func (p *pilot) soon(d time.Duration) time.Duration {
	return d/2 + time.Duration(p.rand.Int64N(int64(d)))
}

// course returns the wanted heading: towards the target of its shot; else towards the nearest
// pickup, or else the nearest ship, and away from rocks that are close.
func (p *pilot) course(me arena.Ship) float64 {
	x, y := float64(me.X), float64(me.Y)
	if p.enemy != nil {
		s, _ := client.View(p.client, p.enemy)
		return math.Atan2(apart(float64(s.Y), y), apart(float64(s.X), x))
	}
	tx, ty := p.target(x, y)
	for _, o := range p.rocks.all {
		r := o.State()
		dx, dy := apart(float64(r.X), x), apart(float64(r.Y), y)
		reach := rockSense + float64(r.Radius)
		if dx > reach || dx < -reach || dy > reach || dy < -reach {
			continue // Most rocks: no root is needed.
		}
		if d := math.Hypot(dx, dy); d > 0 && d < reach {
			push := 2 * (reach - d) / reach
			tx -= push * dx / d
			ty -= push * dy / d
		}
	}
	return math.Atan2(ty, tx)
}

// target returns the direction of the pilot's goal, as a vector of length 1; it is zero in an empty
// arena.
func (p *pilot) target(x, y float64) (dx, dy float64) {
	best := math.Inf(1)
	for _, o := range p.pickups.all {
		s := o.State()
		best, dx, dy = nearer(best, dx, dy, apart(float64(s.X), x), apart(float64(s.Y), y))
	}
	if math.IsInf(best, 1) {
		for _, o := range p.ships.all {
			s := o.State()
			best, dx, dy = nearer(best, dx, dy, apart(float64(s.X), x), apart(float64(s.Y), y))
		}
	}
	if d := math.Sqrt(best); d > 0 && !math.IsInf(d, 1) {
		return dx / d, dy / d
	}
	return 0, 0
}

// nearer returns the shorter of two vectors; best is the square of the first one's length.
func nearer(best, dx, dy, ox, oy float64) (d2, x, y float64) {
	if d2 := ox*ox + oy*oy; d2 < best {
		return d2, ox, oy
	}
	return best, dx, dy
}

// nearest returns the nearest ship in range, in the pilot's view, and nil if there is none.
func (p *pilot) nearest(me arena.Ship) (found *netloop.Object[arena.Ship]) {
	best := float64(fireRange * fireRange)
	for _, o := range p.ships.all {
		s := o.State()
		dx, dy := apart(float64(s.X), float64(me.X)), apart(float64(s.Y), float64(me.Y))
		if d2 := dx*dx + dy*dy; d2 < best && s.Hull > 0 {
			best, found = d2, o
		}
	}
	return found
}

// aimed reports whether the gun points at the drawn target.
func (p *pilot) aimed(me arena.Ship) bool {
	if p.enemy == nil {
		return false
	}
	s, ok := client.View(p.client, p.enemy)
	sin, cos := math.Sincos(float64(me.Heading))
	dx, dy := apart(float64(s.X), float64(me.X)), apart(float64(s.Y), float64(me.Y))
	return ok && dx*cos+dy*sin > 0 && math.Abs(dy*cos-dx*sin) < fireNear
}

// apart returns the signed distance from b to a along one side of the arena, on the shorter way
// around.
func apart(a, b float64) float64 {
	d := a - b
	switch {
	case d > arena.Size/2:
		return d - arena.Size
	case d < -arena.Size/2:
		return d + arena.Size
	}
	return d
}

// angle reduces an angle to −π to π.
func angle(a float64) float64 { return math.Remainder(a, 2*math.Pi) }

// lines are the pilots' chat.
var lines = [...]string{
	"good shot", "that was close", "watch the rocks", "who needs a shield?", "nice flying", "again!", "behind you", "well played",
}
