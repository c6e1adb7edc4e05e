package simulation

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// inputs checks the inputs of clients. The documents: the comment of netloop.Input, NETCODE.md, and
// the records 0032 and 0058 in docs/adr.
//
//   - A client has one input in a fixed step, and a press runs once at most.
//   - At rest a press runs within a round trip and three ticks: also in a room that sleeps, right
//     after a move, and after the path has become longer.
type inputs struct {
	p       *play
	steps   map[roomKey]map[netloop.ClientID]uint64
	presses map[uint32]*press
	fired   uint32
	tries   int // in real time: presses again
}

type press struct {
	g        *bot
	at       time.Duration
	why      string
	sampled  uint64
	ran      int
	deadline time.Duration
}

func newInputs(p *play) inputs {
	return inputs{p: p, steps: map[roomKey]map[netloop.ClientID]uint64{}, presses: map[uint32]*press{}}
}

// ran notes an input that ran.
func (x *inputs) ran(key roomKey, id netloop.ClientID, step uint64, in control) {
	of := x.steps[key]
	if of == nil {
		of = map[netloop.ClientID]uint64{}
		x.steps[key] = of
	}
	if step <= of[id] {
		x.p.fail("inputs", "client %d of room %q has an input in step %d after one in step %d", id, key.name, step, of[id])
	}
	of[id] = step
	if p := x.presses[in.Fire]; p != nil {
		x.p.note("press %d of bot %d runs", in.Fire, p.g.n)
		if p.ran++; p.ran > 1 {
			x.p.fail("inputs", "the press of bot %d at %v runs %d times", p.g.n, p.at, p.ran)
		}
		if late := x.p.w.Now() - p.deadline; late > 0 && !x.p.real {
			x.p.fail("inputs", "the press of bot %d at %v, %s, runs %v late", p.g.n, p.at, p.why, late)
		}
	}
}

// taken forgets the steps of a client that another program has taken over, or that has left.
func (x *inputs) taken(key roomKey, id netloop.ClientID) { delete(x.steps[key], id) }

// sampled notes the step for which a client has made an input with a press.
func (x *inputs) sampled(g *bot, fire uint32, step uint64) {
	if p := x.presses[fire]; p != nil {
		p.sampled = step
		x.p.note("bot %d makes the input of step %d with press %d", g.n, step, fire)
	}
}

// leadSlack is the time by which the steps of a client may lead too far before they jump: see the
// record 0031. Troubles before the rest raise the lead, and it falls by 1 % of the elapsed time.
const leadSlack = 250 * time.Millisecond

// press lets a bot press a key, if it plays.
func (x *inputs) press(g *bot, why string, more time.Duration) {
	f := x.p.rooms.byName[g.c.Room()]
	if !g.playing() || f == nil || f.in[g.c.ID()] == nil || f.in[g.c.ID()].spectator || f.in[g.c.ID()].bot != g.n {
		return
	}
	tick, step, frame := f.spec.Rate.Period(), f.spec.FixedRate.Period(), f.spec.Rate.Period()
	if g.join.FPS > 0 {
		frame = time.Second / time.Duration(g.join.FPS)
	}
	x.fired++
	g.fire = x.fired
	ticks := 3 * tick
	if step < tick {
		ticks = 5 * tick // The first step of a tick waits longest: the lead takes that for jitter.
	}
	limit := 2*g.link.Delay + ticks + 3*step + 2*frame + leadSlack + more + x.p.slack(3*time.Second)
	x.presses[x.fired] = &press{g: g, at: x.p.w.Now(), why: why, deadline: x.p.w.Now() + limit}
}

// wait plays until all presses have run, or are late.
func (x *inputs) wait() {
	last := x.p.w.Now()
	for _, p := range x.presses {
		last = max(last, p.deadline+nap)
	}
	if !x.p.await(last-x.p.w.Now(), x.ranAll) || x.p.real && x.again() {
		return
	}
	for n := uint32(1); n <= x.fired; n++ {
		if p := x.presses[n]; p != nil && p.ran == 0 && p.g.playing() {
			x.p.fail("inputs", "the press of bot %d in room %q at %v, %s, has not run by %v; its input was made for step %d", p.g.n, p.g.c.Room(), p.at, p.why, p.deadline, p.sampled)
		}
	}
}

// ranAll reports whether all presses have run.
func (x *inputs) ranAll() bool {
	for _, p := range x.presses {
		if p.ran == 0 && p.g.playing() {
			return false
		}
	}
	return true
}

// rest presses keys.
func (x *inputs) rest() {
	for _, g := range x.p.all {
		x.press(g, "after a rest", 0)
	}
	if x.wait(); x.p.finding != nil {
		return
	}
	for _, g := range x.p.all {
		if g.gone {
			continue
		}
		g.link = netlooptest.Link{Delay: g.link.Delay + 100*time.Millisecond}
		x.p.w.SetLink(g.c, g.link)
		x.press(g, "as the path becomes longer", 200*time.Millisecond)
	}
	if x.wait(); x.p.finding != nil {
		return
	}
	x.moves()
	// The state that the presses have changed arrives, and the unused tickets expire.
	if x.p.await(2*time.Second+4*x.p.rooms.slowest(), x.p.w.atRest) {
		x.p.await(6*time.Second, x.p.unreserved)
	}
}

// moves lets some bots move to other rooms at once, and press a key as soon as they play.
func (x *inputs) moves() {
	names, way := x.p.rooms.names(), map[*bot]string{}
	for i, g := range x.p.all {
		from := x.p.rooms.byName[g.c.Room()]
		to := names[i%len(names)]
		if !g.playing() || from == nil || x.p.ends.ending(from.key) || from.in[g.c.ID()] == nil || from.in[g.c.ID()].spectator || to == from.key.name || len(way) == 3 {
			continue
		}
		if all, err := x.p.reserve(to, netloop.Reservation{TTL: 6 * time.Second}); err == nil && g.c.Move(all[0]) == nil {
			way[g] = to
		}
	}
	if len(way) == 0 {
		return
	}
	// A lost packet of a first state is sent again some snapshots later.
	for by := x.p.w.Now() + 10*time.Second + 4*x.p.rooms.slowest(); len(way) > 0; {
		if !x.p.until(x.p.w.Now() + nap) {
			return
		}
		for _, g := range x.p.all {
			to, moves := way[g]
			there, s := g.playing() && g.c.Room() == to, g.c.State()
			if !moves || !there && s.Phase != client.Closed && x.p.w.Now() < by {
				continue
			}
			delete(way, g)
			f := x.p.rooms.byName[to] // It may refuse a player that it already has.
			if !there && f != nil && f.spec.Duplicate != netloop.DuplicateRefuse && s.Code != netloop.CodeReplaced && g.join.Vanish == 0 {
				x.p.fail("tickets", "bot %d had a valid ticket for room %q, and is %v in room %q: %v %q", g.n, to, s.Phase, g.c.Room(), s.Code, s.Text)
			}
			x.press(g, "after a move", 0)
		}
	}
	x.wait()
}
