package play

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/netlooptest"
)

// join lets a player join, and waits until both ships are drawn.
func join(w *netlooptest.World, name string, delay time.Duration) *Game {
	return New(w.Join("", arena.JoinParams{Name: name}, netlooptest.Link{Delay: delay}))
}

// other returns the ship of the other player.
func (f *Frame) other() (found Ship) {
	for _, s := range f.Ships {
		if !s.Own {
			found = s
		}
	}
	return found
}

// With a round trip of 200 ms the own ship follows the input in the same frame, and another
// player's ship is drawn evenly between its snapshots. The frame has the names, and everything is
// placed around the own ship.
func TestTheFrameShowsThePrediction(t *testing.T) {
	w := netlooptest.New(t, arena.New(), netlooptest.Room(netloop.RoomSpec{SendEvery: 3}))
	ada, bob := join(w, "ada", 100*time.Millisecond), join(w, "bob", 20*time.Millisecond)
	w.Until(240, func() bool { return ada.Frame.Own != nil && len(ada.Frame.Ships) == 2 && bob.Frame.Own != nil })
	w.Tick(func(t *netloop.Tick) { // Far away from each other, and over the edge.
		for o := range arena.Ships.All(t) {
			s := o.Edit(t)
			s.X, s.Y, s.Heading = arena.Size-50, 100, 0
			if s.Name == "bob" {
				s.X = 50
			}
		}
		for o := range arena.Rocks.All(t) {
			o.Despawn(t)
		}
	})
	w.Step(60)
	if own, other := ada.Frame.Own, ada.Frame.other(); own.Name != "ada" || other.Name != "bob" {
		t.Errorf("the names are %q and %q", own.Name, other.Name)
	}
	if dx, dy := ada.Frame.Place(ada.Frame.other().X, ada.Frame.other().Y); math.Abs(float64(dx-100)) > 1 || dy != 0 {
		t.Errorf("the other ship is drawn at %v, %v", dx, dy)
	}
	before := ada.Frame.Own.Heading
	ada.Input.Turn, bob.Input.Thrust = 1, true
	w.Step(3)
	if ada.Frame.Own.Heading <= before {
		t.Error("the own ship does not follow the input at once")
	}
	w.Step(30)
	still := 0
	for range 30 {
		was := ada.Frame.other().X
		w.Step(1)
		if ada.Frame.other().X <= was {
			still++
		}
	}
	if still > 2 {
		t.Errorf("the other ship stands in %d of 30 frames: it is not drawn between snapshots", still)
	}
	if n := ada.Client.Stats().Prediction.MispredictedLate; n > 0 {
		t.Errorf("%d predictions were wrong", n)
	}
}

// A press of fire is one shot, which is visible and heard at once. A fallen ship bursts.
func TestShotsAndBursts(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	ada := join(w, "ada", 100*time.Millisecond)
	w.Until(240, func() bool { return ada.Frame.Own != nil && ada.Client.State().Phase == client.Playing })
	w.Step(60)
	ada.Heard()
	ada.Input.Fire = true
	w.Step(3)
	if heard := ada.Heard(); len(heard) != 1 || heard[0].Kind != SoundShot || heard[0].Volume < 0.99 {
		t.Errorf("the sounds of a shot: %+v", heard)
	}
	if len(ada.Frame.Shots) != 1 || !ada.Frame.Shots[0].Own || ada.Frame.Shots[0].Left <= 0 {
		t.Errorf("after the press there are the shots %+v", ada.Frame.Shots)
	}
	w.Step(60)
	if len(ada.Frame.Shots) > 0 || ada.Input.Fire || len(ada.Heard()) > 0 {
		t.Error("one press fires again and again")
	}
	w.Tick(func(t *netloop.Tick) {
		for o := range arena.Ships.All(t) {
			s := o.Edit(t)
			s.Hull, s.Falls = 0, t.In(time.Second)
		}
	})
	w.Until(60, func() bool { return len(ada.Frame.Bursts) == 1 && ada.Frame.Bursts[0].Part > 0.5 })
	w.Step(60)
	if len(ada.Frame.Bursts) > 0 {
		t.Error("the burst does not end")
	}
	if heard := ada.Heard(); len(heard) == 0 || heard[0].Kind != SoundBurst {
		t.Errorf("the sounds of a burst: %+v", heard)
	}
}

// A player hears the own hits and pickups, and shots and bursts of others the less the farther they
// are. At most 16 sounds wait.
func TestSoundsAreOfTheOwnShip(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	ada, bob := join(w, "ada", 20*time.Millisecond), join(w, "bob", 20*time.Millisecond)
	w.Until(240, func() bool { return ada.Frame.Own != nil && len(ada.Frame.Ships) == 2 && bob.Frame.Own != nil })
	edit := func(name string, change func(t *netloop.Tick, s *arena.Ship)) {
		w.Tick(func(t *netloop.Tick) {
			for o := range arena.Ships.All(t) {
				if o.State().Name == name {
					change(t, o.Edit(t))
				}
			}
		})
		w.Step(30)
	}
	edit("ada", func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = 1000, 1000, 3 })
	edit("bob", func(_ *netloop.Tick, s *arena.Ship) { s.X, s.Y, s.Hull = 1600, 1000, 3 })
	for _, c := range []struct {
		name   string
		change func(t *netloop.Tick, s *arena.Ship)
		kind   SoundKind
		volume float64 // as ada hears it
	}{
		{"ada", func(_ *netloop.Tick, s *arena.Ship) { s.Hull-- }, SoundHit, 1},
		{"bob", func(_ *netloop.Tick, s *arena.Ship) { s.Hull-- }, SoundHit, 0},
		{"ada", func(_ *netloop.Tick, s *arena.Ship) { s.Score++ }, SoundPickup, 1},
		{"bob", func(_ *netloop.Tick, s *arena.Ship) { s.Score++ }, SoundPickup, 0},
		{"bob", func(t *netloop.Tick, s *arena.Ship) { s.Hull, s.Falls = 0, t.In(time.Second) }, SoundBurst, 0.5},
	} {
		ada.Heard()
		edit(c.name, c.change)
		switch heard := ada.Heard(); {
		case c.volume == 0 && len(heard) > 0:
			t.Errorf("%s of another ship: %+v", c.name, heard)
		case c.volume > 0 && (len(heard) != 1 || heard[0].Kind != c.kind || math.Abs(heard[0].Volume-c.volume) > 0.05):
			t.Errorf("want sound %d of %s at %v: %+v", c.kind, c.name, c.volume, heard)
		}
	}
	for range 3 * maxSounds {
		ada.sound(SoundShot, ada.Frame.X, ada.Frame.Y)
	}
	if n := len(ada.Heard()); n != maxSounds {
		t.Errorf("%d sounds wait", n)
	}
}

// Each sound is loud at its begin and silent at its end, so that it does not click.
func TestWavesFadeOut(t *testing.T) {
	peak := func(samples []byte) (most int) {
		for ; len(samples) > 0; samples = samples[2:] {
			most = max(most, int(int16(binary.LittleEndian.Uint16(samples))))
		}
		return most
	}
	for k := range SoundKinds {
		wave := Wave(k)
		if n := SampleRate / 100; len(wave) < 20*n || peak(wave[:2*n]) < math.MaxInt16/2 || peak(wave[len(wave)-n/2:]) > 64 {
			t.Errorf("sound %d has %d samples, peaks %d and %d", k, len(wave)/2, peak(wave[:2*n]), peak(wave[len(wave)-n/2:]))
		}
	}
}

// The graph has a column for each 50 ms, and marks lost packets.
func TestTheGraphHasTheFigures(t *testing.T) {
	w := netlooptest.New(t, arena.New())
	g := New(w.Join("", arena.JoinParams{Name: "ada"}, netlooptest.Link{Delay: 50 * time.Millisecond, Loss: 0.2}))
	w.Advance(20 * time.Second)
	lost := 0
	for _, c := range g.Graph.Columns {
		if c.RTT < 100*time.Millisecond || c.RTT > 150*time.Millisecond || c.Delay <= 0 {
			t.Fatalf("a column has %+v", c)
		}
		if c.Lost {
			lost++
		}
	}
	if in, out := g.Graph.Second(); len(g.Graph.Columns) != maxColumns || lost < 10 || in < out || out == 0 {
		t.Errorf("%d columns, %d with losses, %d bytes received and %d sent in a second", len(g.Graph.Columns), lost, in, out)
	}
}
