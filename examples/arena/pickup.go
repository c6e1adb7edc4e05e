package arena

import (
	"time"

	"github.com/netloop/netloop"
)

const (
	pickupRadius   = 20
	pickupInterval = time.Second // between two new ones
	shieldTime     = 5 * time.Second
	maxHull        = 5
)

// placePickups adds a pickup once per interval, while some are missing.
func (a *room) placePickups(t *netloop.Tick) {
	if t.GameTime()%pickupInterval >= t.Delta() {
		return
	}
	waiting := 0
	for range Pickups.All(t) {
		waiting++
	}
	if waiting >= a.cfg.Pickups {
		return
	}
	x, y := anywhere(t.Rand())
	Pickups.Spawn(t, Pickup{X: x, Y: y, Kind: PickupKind(t.Rand().IntN(2))})
}

// collect gives pickups to the ships that touch them.
func (a *room) collect(t *netloop.Tick) {
	for o := range Pickups.All(t) {
		p := o.State()
		for ship := range Ships.All(t) {
			seen := ship.State()
			if dx, dy := distance(seen.X, p.X), distance(seen.Y, p.Y); seen.Hull == 0 || dx*dx+dy*dy >= (shipRadius+pickupRadius)*(shipRadius+pickupRadius) {
				continue
			}
			s := ship.Edit(t)
			s.Score++
			switch p.Kind {
			case Repair:
				s.Hull = min(s.Hull+1, maxHull)
			case Shield:
				s.Shield = t.In(shieldTime)
			}
			o.Despawn(t)
			break
		}
	}
}
