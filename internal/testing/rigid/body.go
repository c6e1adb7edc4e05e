package rigid

// Body is a cube. A cube has the same inertia about every axis, which keeps the solver short.
type Body struct {
	Pos  Vec // of its centre, in metres
	Rot  Quat
	Vel  Vec
	Spin Vec // radians per second
	// Asleep means that it is at rest. It does not move until another body hits it.
	Asleep bool
	// Touched means that a body marked as Touches has moved it recently, directly or through
	// others.
	Touched bool
	// Touches means that this body sets Touched in each body that it moves. Such a body stays
	// awake.
	Touches bool

	half    float64
	perMass float64 // 1 ÷ mass
	perTurn float64 // 1 ÷ moment of inertia
	axes    [3]Vec
	calm    int // steps with little movement
	still   int // steps since the body was last lively: see stillFor
}

// masses returns 1 ÷ mass and 1 ÷ moment of inertia; both are 0 for a sleeping body, so that no
// impulse moves it.
func (b *Body) masses() (perMass, perTurn float64) {
	if b.Asleep {
		return 0, 0
	}
	return b.perMass, b.perTurn
}

// velocity returns the velocity of the point r relative to the centre.
func (b *Body) velocity(r Vec) Vec { return b.Vel.Add(b.Spin.cross(r)) }

// push applies an impulse at the point r relative to the centre.
func (b *Body) push(impulse, r Vec) {
	if !b.Asleep {
		b.Vel = b.Vel.Add(impulse.Scale(b.perMass))
		b.Spin = b.Spin.Add(r.cross(impulse).Scale(b.perTurn))
	}
}

func (b *Body) wake() { b.Asleep, b.calm = false, 0 }

// corner returns one of the eight corners, in the world: bit k of i selects its side along axis k.
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
