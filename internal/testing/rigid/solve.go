package rigid

const (
	rounds   = 3     // of impulses in a step: few, so that piles need time to settle
	correct  = 0.2   // fraction of a penetration that a step corrects
	slop     = 0.005 // metres of penetration that are not corrected, so that contacts persist
	outward  = 3.0   // metres per second, the maximum of that correction
	friction = 0.5
	same     = 0.05 // metres within which a point of contact equals one of the last step
)

// prepare computes the constants of a step, and applies the impulses of the last step, which are
// nearly the same for stacked cubes.
func (w *World) prepare(t *touch) {
	a, b := &w.Bodies[t.a], w.other(t)
	old := w.before(t)
	u, v := tangents(t.normal)
	for i := range t.points {
		p := &t.points[i]
		p.ra, p.rb = p.at.Sub(a.Pos), p.at.Sub(b.Pos)
		p.local = Vec{a.axes[0].Dot(p.ra), a.axes[1].Dot(p.ra), a.axes[2].Dot(p.ra)}
		for j := range old {
			if d := old[j].local.Sub(p.local); d.Dot(d) < same*same {
				p.push, p.along, p.across = old[j].push, old[j].along, old[j].across
				old[j].local = Vec{X: 1e9} // taken
				break
			}
		}
		p.mass, p.massU, p.massV = inertia(a, b, p, t.normal), inertia(a, b, p, u), inertia(a, b, p, v)
		p.wantedOut = min(mul(correct/dt, max(p.depth-slop, 0)), outward)
		if p.depth < 0 { // Apart: it may approach up to a contact.
			p.wantedOut = p.depth / dt
		}
		impulse := t.normal.Scale(p.push).Add(u.Scale(p.along)).Add(v.Scale(p.across))
		a.push(impulse.Scale(-1), p.ra)
		b.push(impulse, p.rb)
	}
}

// inertia returns the effective mass for an impulse along n at the point p.
func inertia(a, b *Body, p *point, n Vec) float64 {
	am, at := a.masses()
	bm, bt := b.masses()
	ca, cb := p.ra.cross(n), p.rb.cross(n)
	return 1 / (am + bm + mul(at, ca.Dot(ca)) + mul(bt, cb.Dot(cb)))
}

// solve changes velocities so that contact points separate, and slide within the limit of
// friction.
func (w *World) solve(t *touch) {
	a, b := &w.Bodies[t.a], w.other(t)
	u, v := tangents(t.normal)
	for i := range t.points {
		p := &t.points[i]
		slide := b.velocity(p.rb).Sub(a.velocity(p.ra))
		most := mul(friction, p.push)
		along := min(max(p.along-mul(p.massU, slide.Dot(u)), -most), most)
		across := min(max(p.across-mul(p.massV, slide.Dot(v)), -most), most)
		impulse := u.Scale(along - p.along).Add(v.Scale(across - p.across))
		p.along, p.across = along, across
		a.push(impulse.Scale(-1), p.ra)
		b.push(impulse, p.rb)

		out := b.velocity(p.rb).Sub(a.velocity(p.ra)).Dot(t.normal)
		push := max(p.push+mul(p.mass, p.wantedOut-out), 0)
		impulse = t.normal.Scale(push - p.push)
		p.push = push
		a.push(impulse.Scale(-1), p.ra)
		b.push(impulse, p.rb)
	}
}
