package bot

import (
	"math"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
)

// feel takes the measurements of a pilot. A loadtest.Meter implements it.
type feel interface {
	Reacted(frames int)     // frames from an input until the drawn own ship has followed it
	Corrected(size float64) // the distance by which a correction moved the drawn own ship
	Hit(confirmed bool)     // of a hit that the pilot saw as it fired
}

// hitLimit is how long a pilot waits for the server's confirmation of a hit.
const hitLimit = 2 * time.Second

// senses has the state of a pilot's measurements.
type senses struct {
	frame   int
	heading float32 // as drawn in the last frame
	still   bool    // the heading was the same in the frame before that
	pressed int     // the frame in which a turn began that is not visible yet; 0 is none
	turned  int8    // in the newest input
	saw     []shotSeen
}

// shotSeen is a shot that hit in the pilot's view.
type shotSeen struct {
	step uint64
	at   time.Duration // game time
}

// play lets the pilot fly, and measures.
func (p *pilot) play() {
	arena.Play(p.client, p.press, client.Snap(func(was, is *arena.Ship) bool {
		p.feel.Corrected(math.Hypot(apart(float64(was.X), float64(is.X)), apart(float64(was.Y), float64(is.Y))))
		return false
	}))
	client.Watch(p.client, arena.Shots, client.Watcher[arena.Shot]{Spawn: p.fired})
	client.Handle(p.client, arena.Struck, p.struck)
	p.client.On(netloop.PreLateUpdate, "bot.feel", p.look)
}

// press is the pilot's control, and records the beginning of a turn.
func (p *pilot) press(t *netloop.Tick) arena.Control {
	in := p.control(t)
	if s := &p.senses; s.still && s.pressed == 0 && s.turned == 0 && in.Turn != 0 {
		s.pressed = s.frame
	}
	p.senses.turned = in.Turn
	return in
}

// fired checks whether a shot of the pilot hits, in the frame in which it is fired.
func (p *pilot) fired(t *netloop.Tick, o *netloop.Object[arena.Shot]) {
	shot := o.State()
	if o.Owner() != p.client.ID() || shot.Born.Step != t.FixedStep() {
		return
	}
	if shot.Strikes(t, o.Owner(), client.Views(p.client, arena.Rocks), client.Views(p.client, arena.Ships)) != nil {
		p.senses.saw = append(p.senses.saw, shotSeen{shot.Born.Step, t.GameTime()})
	}
}

// struck takes the server's confirmation of a hit.
func (p *pilot) struck(_ *netloop.Tick, m arena.Strike) {
	if p.ship == nil || m.By != p.ship.Ref() {
		return
	}
	for i, shot := range p.senses.saw {
		if shot.step == m.Step {
			p.senses.saw = append(p.senses.saw[:i], p.senses.saw[i+1:]...)
			p.feel.Hit(true)
			return
		}
	}
}

// look is the system bot.feel: it measures the frame that is about to be drawn.
func (p *pilot) look(t *netloop.Tick) {
	s := &p.senses
	s.frame++
	for len(s.saw) > 0 && t.GameTime() > s.saw[0].at+hitLimit {
		s.saw = s.saw[1:]
		p.feel.Hit(false)
	}
	if p.ship == nil {
		return
	}
	me, _ := client.View(p.client, p.ship)
	turned := me.Heading != s.heading
	if s.pressed > 0 && turned {
		p.feel.Reacted(s.frame - 1 - s.pressed)
		s.pressed = 0
	}
	s.still = !turned
	s.heading = me.Heading
}
