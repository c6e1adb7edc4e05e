package arena

import "github.com/netloop/netloop"

const (
	rockSpeed  = 40 // units per second, at most, along each side
	rockRadius = 24 // at most
)

// scatterRocks places the rocks before the first tick.
func (a *room) scatterRocks(t *netloop.Tick) {
	for range a.cfg.Rocks {
		rock := Rock{Radius: uint8(8 + t.Rand().IntN(rockRadius-8))}
		rock.X, rock.Y = anywhere(t.Rand())
		rock.VX = (t.Rand().Float32()*2 - 1) * rockSpeed
		rock.VY = (t.Rand().Float32()*2 - 1) * rockSpeed
		Rocks.Spawn(t, rock)
	}
}

// driftRocks moves the rocks in a fixed step.
func (a *room) driftRocks(t *netloop.Tick) {
	dt := float32(t.Delta().Seconds())
	for o := range Rocks.All(t) {
		if r := o.Edit(t); drift(&r.X, &r.Y, r.VX, r.VY, dt) {
			r.Leaps++
		}
	}
}
