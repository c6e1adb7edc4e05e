package rigid

import "math"

// Vec is a point or a direction.
type Vec struct{ X, Y, Z float64 }

// mul rounds the product: otherwise some machines would fuse it with a following sum, with
// another result.
func mul(a, b float64) float64 { return float64(a * b) }

func (a Vec) Add(b Vec) Vec       { return Vec{a.X + b.X, a.Y + b.Y, a.Z + b.Z} }
func (a Vec) Sub(b Vec) Vec       { return Vec{a.X - b.X, a.Y - b.Y, a.Z - b.Z} }
func (a Vec) Scale(f float64) Vec { return Vec{mul(a.X, f), mul(a.Y, f), mul(a.Z, f)} }
func (a Vec) Dot(b Vec) float64   { return mul(a.X, b.X) + mul(a.Y, b.Y) + mul(a.Z, b.Z) }
func (a Vec) Length() float64     { return math.Sqrt(a.Dot(a)) }

func (a Vec) cross(b Vec) Vec {
	return Vec{mul(a.Y, b.Z) - mul(a.Z, b.Y), mul(a.Z, b.X) - mul(a.X, b.Z), mul(a.X, b.Y) - mul(a.Y, b.X)}
}

// unit returns the direction of a, or up if it has none.
func (a Vec) unit() Vec {
	l := a.Length()
	if l < 1e-12 {
		return Vec{Z: 1}
	}
	return Vec{a.X / l, a.Y / l, a.Z / l}
}

// tangents returns two directions perpendicular to the unit vector n and to each other.
func tangents(n Vec) (Vec, Vec) {
	across := Vec{X: 1}
	if math.Abs(n.X) > 0.7 {
		across = Vec{Y: 1}
	}
	u := n.cross(across).unit()
	return u, n.cross(u)
}

// Quat is a rotation.
type Quat struct{ X, Y, Z, W float64 }

// turn returns q after a rotation by spin, in radians per second, for a time.
func (q Quat) turn(spin Vec, dt float64) Quat {
	h := spin.Scale(dt / 2)
	q = Quat{
		q.X + mul(h.X, q.W) + mul(h.Y, q.Z) - mul(h.Z, q.Y),
		q.Y + mul(h.Y, q.W) + mul(h.Z, q.X) - mul(h.X, q.Z),
		q.Z + mul(h.Z, q.W) + mul(h.X, q.Y) - mul(h.Y, q.X),
		q.W - mul(h.X, q.X) - mul(h.Y, q.Y) - mul(h.Z, q.Z),
	}
	l := math.Sqrt(mul(q.X, q.X) + mul(q.Y, q.Y) + mul(q.Z, q.Z) + mul(q.W, q.W))
	return Quat{q.X / l, q.Y / l, q.Z / l, q.W / l}
}

// axes returns the normals of the sides of a rotated cube.
func (q Quat) axes() [3]Vec {
	xx, yy, zz := mul(q.X, q.X), mul(q.Y, q.Y), mul(q.Z, q.Z)
	xy, xz, yz := mul(q.X, q.Y), mul(q.X, q.Z), mul(q.Y, q.Z)
	wx, wy, wz := mul(q.W, q.X), mul(q.W, q.Y), mul(q.W, q.Z)
	return [3]Vec{
		{1 - 2*(yy+zz), 2 * (xy + wz), 2 * (xz - wy)},
		{2 * (xy - wz), 1 - 2*(xx+zz), 2 * (yz + wx)},
		{2 * (xz + wy), 2 * (yz - wx), 1 - 2*(xx+yy)},
	}
}
