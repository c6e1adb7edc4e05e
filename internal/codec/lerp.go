package codec

import (
	"errors"
	"fmt"
)

// Lerp selects the interpolation of a value between two versions, for drawing. It is a hint for
// renderers: it does not affect captured or sent values, and is not sent to clients.
type Lerp uint8

// The interpolations. Without a tag it is Linear for floats, Rotation for quaternions and Step for
// all other kinds.
const (
	LerpStep     Lerp = iota // the older version's value, until the newer one is reached
	LerpLinear               // on the straight line between both
	LerpAngle                // like Linear, but the short way round a circle of 2π
	LerpDegrees              // like Linear, but the short way round a circle of 360
	LerpRotation             // the short way from one quaternion to the other
)

var lerps = map[string]Lerp{"none": LerpStep, "linear": LerpLinear, "angle": LerpAngle, "degrees": LerpDegrees}

func (l Lerp) String() string {
	return [...]string{"none", "linear", "angle", "degrees", "rotation"}[l]
}

// lerpTag is the tag lerp of a field.
type lerpTag struct {
	is       Lerp
	set, own bool // by any tag, and by the tag of the field itself
}

func (t *lerpTag) parse(value string) error {
	l, ok := lerps[value]
	if !ok {
		return fmt.Errorf("lerp=%s is not none, linear, angle or degrees", value)
	}
	*t = lerpTag{l, true, true}
	return nil
}

// fits reports whether values of kind k can be interpolated as the tag requires.
func (t lerpTag) fits(k Kind) bool {
	switch {
	case t.is == LerpStep:
		return true
	case k >= Float32 && k <= Range64:
		return true
	case k >= Int8 && k <= Uint:
		return t.is != LerpAngle // whole radians cannot be interpolated
	default:
		return false
	}
}

// lerps reports whether n, or at least one part of it, can be interpolated as the tag requires.
func (n *node) lerps(t lerpTag) bool {
	switch n.kind {
	case Array:
		return t.is == LerpStep || n.elem.lerps(t)
	case Struct:
		for i := range n.fields {
			if n.fields[i].node.lerps(t) {
				return true
			}
		}
		return t.is == LerpStep
	default:
		return t.fits(n.kind)
	}
}

// draw sets the interpolation of the leaves of a field: the interpolation of its own or an outer
// tag, if it fits, and otherwise the default of their kind. Structs inside have already set theirs.
func (w *walker) draw(n *node, t lerpTag) error {
	switch {
	case t.own && w.inside > 0:
		return errors.New("lerp inside a slice or map, which is drawn as it is")
	case t.own && !n.lerps(t):
		return fmt.Errorf("lerp=%v on a type without numbers that can be drawn so; remove it", t.is)
	case n.kind == Array:
		return w.draw(n.elem, t.inherited())
	case n.kind == Struct:
	case t.set && t.fits(n.kind):
		n.lerp = t.is
	case n.kind >= Float32 && n.kind <= Range64:
		n.lerp = LerpLinear
	case n.kind == Quat:
		n.lerp = LerpRotation
	}
	return nil
}

// jumps sets the tag teleport on the parts of n that become leaves.
func (n *node) jumps(set bool) {
	switch {
	case !set || n.kind == Struct: // the fields inside have the tag from their own or outer tags
	case n.kind == Array:
		n.elem.jumps(set)
	default:
		n.jump = true
	}
}

// inherited returns the tag for inner fields.
func (t lerpTag) inherited() lerpTag { t.own = false; return t }
