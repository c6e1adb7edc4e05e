package play

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
)

// Sound is a sound of the arena that begins now.
type Sound struct {
	Kind   SoundKind
	Volume float64 // from 0 to 1, smaller with the distance
}

// SoundKind is the kind of a sound.
type SoundKind uint8

// The kinds of sounds. Hits and pickups are heard by the own ship's player alone.
const (
	SoundShot SoundKind = iota
	SoundHit
	SoundBurst
	SoundPickup
	SoundKinds // the number of kinds
)

const (
	maxSounds = 16   // that wait for Heard
	earshot   = 1200 // distance at which nothing is heard
)

// watch adds bursts to the frame, and the sounds of shots, hits, bursts and pickups.
func (g *Game) watch() {
	client.Watch(g.Client, arena.Shots, client.Watcher[arena.Shot]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[arena.Shot]) { g.sound(SoundShot, o.State().X, o.State().Y) },
	})
	client.Watch(g.Client, arena.Ships, client.Watcher[arena.Ship]{
		Change: func(t *netloop.Tick, o *netloop.Object[arena.Ship], old arena.Ship) {
			s, own := o.State(), o.Owner() == g.Client.ID()
			switch {
			case old.Hull > 0 && s.Hull == 0:
				g.Frame.Bursts = append(g.Frame.Bursts, Burst{X: s.X, Y: s.Y, since: t.GameTime()})
				g.sound(SoundBurst, s.X, s.Y)
			case own && s.Hull > 0 && s.Hull < old.Hull:
				g.sound(SoundHit, s.X, s.Y)
			case own && s.Score == old.Score+1:
				g.sound(SoundPickup, s.X, s.Y)
			}
		},
	})
}

// sound adds a sound at a position.
func (g *Game) sound(k SoundKind, x, y float32) {
	dx, dy := g.Frame.Place(x, y)
	volume := 1 - math.Hypot(float64(dx), float64(dy))/earshot
	if volume > 0 && len(g.sounds) < maxSounds {
		g.sounds = append(g.sounds, Sound{k, volume})
	}
}

// Heard returns the sounds that have begun since the last call, at most 16. The slice is used again
// for the next ones.
func (g *Game) Heard() []Sound {
	all := g.sounds
	g.sounds = g.sounds[:0]
	return all
}

// SampleRate is the number of samples of a Wave in a second.
const SampleRate = 48000

// tones are the sounds: a tone glides from one frequency to another, in Hz, with a share of noise.
var tones = [SoundKinds]struct {
	length          time.Duration
	from, to, noise float64
}{
	SoundShot:   {140 * time.Millisecond, 1400, 180, 0.15},
	SoundHit:    {180 * time.Millisecond, 320, 90, 0.5},
	SoundBurst:  {700 * time.Millisecond, 160, 40, 0.9},
	SoundPickup: {220 * time.Millisecond, 660, 1320, 0},
}

// Wave returns a sound as samples of 16 bits for one channel, little endian. It fades out.
func Wave(k SoundKind) []byte {
	tone := &tones[k]
	n := int(tone.length.Seconds() * SampleRate)
	out := make([]byte, 0, 2*n)
	random := rand.New(rand.NewPCG(1, 1))
	phase := 0.0
	for i := range n {
		part := float64(i) / float64(n)
		phase += 2 * math.Pi * (tone.from + (tone.to-tone.from)*part) / SampleRate
		v := (1-tone.noise)*math.Sin(phase) + tone.noise*(2*random.Float64()-1)
		out = binary.LittleEndian.AppendUint16(out, uint16(int16(v*(1-part)*(1-part)*math.MaxInt16)))
	}
	return out
}
