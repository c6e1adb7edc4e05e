package rigid

// Body is a cube. A cube has the same inertia about every axis, which is what keeps the solver
// short.
type Body struct {
	Pos  Vec // of its middle, in metres
	Rot  Quat
	Vel  Vec
	Spin Vec // radians per second
	// Asleep tells that it has come to rest. It does not move until something hits it.
	Asleep bool
	// Touched tells that a body marked as Touches has moved it of late, directly or by way of
	// others.
	Touched bool
	// Touches makes a body mark those that it moves, and keeps it awake.
	Touches bool

	half    float64
	perMass float64 // 1 ÷ mass
	perTurn float64 // 1 ÷ moment of inertia
	axes    [3]Vec
	calm    int // steps without much movement
	still   int // steps of a touched one without any push
}

// masses returns what impulses do to the body: nothing to one that sleeps.
func (b *Body) masses() (perMass, perTurn float64) {
	if b.Asleep {
		return 0, 0
	}
	return b.perMass, b.perTurn
}

// velocity returns that of the point r away from the middle.
func (b *Body) velocity(r Vec) Vec { return b.Vel.Add(b.Spin.cross(r)) }

// push applies an impulse at the point r away from the middle.
func (b *Body) push(impulse, r Vec) {
	if !b.Asleep {
		b.Vel = b.Vel.Add(impulse.Scale(b.perMass))
		b.Spin = b.Spin.Add(r.cross(impulse).Scale(b.perTurn))
	}
}

func (b *Body) wake() { b.Asleep, b.calm = false, 0 }

// corner returns one of the eight, by the signs of its three bits.
func (b *Body) corner(i int) Vec {
	p := b.Pos
	for k, a := range b.axes {
		if i>>k&1 != 0 {
			p = p.Add(a.Scale(b.half))
		} else {
			p = p.Sub(a.Scale(b.half))
		}
	}
	return p
}
