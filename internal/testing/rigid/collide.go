package rigid

import "math"

// margin is the distance up to which bodies count as touching: contacts of a resting cube then do
// not flicker.
const margin = 0.01

// touch is a contact of two bodies, or of one with the ground, in one step.
type touch struct {
	a, b   int32 // b is ground, or larger than a
	normal Vec   // from a to b
	points []point
}

const ground = -1

// point is one point of a contact, with the state of the solver.
type point struct {
	at    Vec // in the world
	local Vec // in the frame of a, to find it again in the next step
	depth float64

	ra, rb           Vec
	push, along      float64 // impulses along the normal, the first tangent
	across           float64 // and the second
	mass, massU      float64
	massV, wantedOut float64
}

// collideGround adds the corners of a body that are in the ground. The normal points down.
func collideGround(t *touch, body *Body) bool {
	t.normal = Vec{Z: -1}
	for i := range 8 {
		if c := body.corner(i); c.Z < margin {
			t.points = append(t.points, point{at: c, depth: -c.Z})
		}
	}
	return len(t.points) > 0
}

// axis is the separating axis with the smallest overlap so far.
type axis struct {
	overlap float64
	normal  Vec // from a to b
	kind    int // 0..2: a side of a, 3..5: of b, then 3·i + j: the edges i of a and j of b
}

// preferSides is added, in metres, to the overlap along the cross product of two edges, so that
// collide prefers the normal of a side if both are similar: a side has up to eight points of
// contact, two edges have one.
const preferSides = 0.02

// collide finds where two bodies touch.
func collide(t *touch, a, b *Body) bool {
	d := b.Pos.Sub(a.Pos)
	best := axis{overlap: math.Inf(1)}
	for k := range 15 {
		var n Vec
		bias := 0.0
		switch {
		case k < 3:
			n = a.axes[k]
		case k < 6:
			n = b.axes[k-3]
		default:
			n = a.axes[(k-6)/3].cross(b.axes[(k-6)%3])
			l := n.Length()
			if l < 1e-3 {
				continue // parallel edges: a side says it better
			}
			n, bias = n.Scale(1/l), preferSides
		}
		distance := n.Dot(d)
		if distance < 0 {
			n, distance = n.Scale(-1), -distance
		}
		overlap := a.reach(n) + b.reach(n) - distance
		if overlap < -margin {
			return false
		}
		if overlap+bias < best.overlap {
			best = axis{overlap: overlap + bias, normal: n, kind: k}
		}
	}
	t.normal = best.normal
	switch {
	case best.kind < 3:
		t.clip(a, b, best.normal, best.kind)
	case best.kind < 6:
		t.clip(b, a, best.normal.Scale(-1), best.kind-3)
	default:
		t.edges(a, b, (best.kind-6)/3, (best.kind-6)%3, best.overlap-preferSides)
	}
	return len(t.points) > 0
}

// reach is how far the body reaches along a direction from its middle.
func (b *Body) reach(n Vec) float64 {
	return mul(b.half, math.Abs(n.Dot(b.axes[0]))+math.Abs(n.Dot(b.axes[1]))+math.Abs(n.Dot(b.axes[2])))
}

// clip adds the points at which a side of the other body is within the outline of a side of body
// and below it. The side of body is the one whose normal is n: its axis number k or the opposite.
func (t *touch) clip(body, other *Body, n Vec, k int) {
	var one, two [8]Vec
	from, to := other.side(one[:0], n), two[:0]
	for _, j := range [2]int{(k + 1) % 3, (k + 2) % 3} {
		for _, sign := range [2]float64{1, -1} {
			plane := body.axes[j].Scale(sign)
			from, to = cut(to[:0], from, plane, plane.Dot(body.Pos)+body.half), from
		}
	}
	level := n.Dot(body.Pos) + body.half
	for _, p := range from {
		if depth := level - n.Dot(p); depth > -margin {
			t.points = append(t.points, point{at: p.Add(n.Scale(depth / 2)), depth: depth})
		}
	}
}

// side returns the corners of the side that looks most against n, in the order of its outline.
func (b *Body) side(dst []Vec, n Vec) []Vec {
	k, most := 0, -1.0
	for i, a := range b.axes {
		if d := math.Abs(n.Dot(a)); d > most {
			k, most = i, d
		}
	}
	look := b.axes[k]
	if n.Dot(look) > 0 {
		look = look.Scale(-1)
	}
	u, v := b.axes[(k+1)%3].Scale(b.half), b.axes[(k+2)%3].Scale(b.half)
	m := b.Pos.Add(look.Scale(b.half))
	return append(dst, m.Add(u).Add(v), m.Sub(u).Add(v), m.Sub(u).Sub(v), m.Add(u).Sub(v))
}

// cut appends the part of an outline whose points p have plane·p ≤ level. The outline of a cube's
// side, cut four times, has at most eight corners.
func cut(dst, outline []Vec, plane Vec, level float64) []Vec {
	for i, p := range outline {
		q := outline[(i+1)%len(outline)]
		dp, dq := plane.Dot(p)-level, plane.Dot(q)-level
		if dp <= 0 {
			dst = append(dst, p)
		}
		if dp < 0 && dq > 0 || dp > 0 && dq < 0 {
			dst = append(dst, p.Add(q.Sub(p).Scale(dp/(dp-dq))))
		}
	}
	return dst
}

// edges makes the point where an edge of a along its axis i and one of b along j meet.
func (t *touch) edges(a, b *Body, i, j int, depth float64) {
	p, q := a.edge(i, t.normal), b.edge(j, t.normal.Scale(-1))
	u, v, w := a.axes[i], b.axes[j], p.Sub(q)
	uv, uw, vw := u.Dot(v), u.Dot(w), v.Dot(w)
	s := (mul(uv, vw) - uw) / (1 - mul(uv, uv))
	at := p.Add(u.Scale(s))
	t.points = append(t.points, point{at: at.Sub(t.normal.Scale(depth / 2)), depth: depth})
}

// edge returns the middle of the edge along axis i that is farthest along n.
func (b *Body) edge(i int, n Vec) Vec {
	p := b.Pos
	for k, a := range b.axes {
		switch {
		case k == i:
		case n.Dot(a) > 0:
			p = p.Add(a.Scale(b.half))
		default:
			p = p.Sub(a.Scale(b.half))
		}
	}
	return p
}
