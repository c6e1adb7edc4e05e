package codec

import (
	"errors"
	"fmt"
)

// Lerp says how a value between two versions is made of them, for drawing. It is a hint to whoever
// draws: it changes nothing that is captured or sent, and travels in no table.
type Lerp uint8

// The ways. Those without a tag are Linear for floats, Rotation for quaternions and Step for all
// else.
const (
	LerpStep     Lerp = iota // the older version's, until the newer one is reached
	LerpLinear               // on the straight line between both
	LerpAngle                // as Linear, the short way round a circle of 2π
	LerpDegrees              // as Linear, the short way round a circle of 360
	LerpRotation             // the short way from one quaternion to the other
)

var lerps = map[string]Lerp{"none": LerpStep, "linear": LerpLinear, "angle": LerpAngle, "degrees": LerpDegrees}

func (l Lerp) String() string {
	return [...]string{"none", "linear", "angle", "degrees", "rotation"}[l]
}

// lerpTag is what a tag says, if any does.
type lerpTag struct {
	is       Lerp
	set, own bool // by any tag, and by that of the field itself
}

func (t *lerpTag) parse(value string) error {
	l, ok := lerps[value]
	if !ok {
		return fmt.Errorf("lerp=%s is not none, linear, angle or degrees", value)
	}
	*t = lerpTag{l, true, true}
	return nil
}

// fits tells whether a value of kind k can be made so.
func (t lerpTag) fits(k Kind) bool {
	switch {
	case t.is == LerpStep:
		return true
	case k >= Float32 && k <= Range64:
		return true
	case k >= Int8 && k <= Uint:
		return t.is != LerpAngle // in whole radians there is nothing to make
	default:
		return false
	}
}

// lerps tells whether anything inside can be made as the tag says.
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

// draw gives the leaves of a field their way: that of its own or an outer tag, if they can be made
// so, or that of their kind. Structs inside have seen to theirs.
func (w *walker) draw(n *node, t lerpTag) error {
	switch {
	case t.own && w.inside > 0:
		return errors.New("lerp inside a slice or map, which is drawn as it is")
	case t.own && !n.lerps(t):
		return fmt.Errorf("lerp=%v on what has no number that can be drawn so; remove it", t.is)
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

// jumps gives the parts of n that become leaves the tag teleport.
func (n *node) jumps(set bool) {
	switch {
	case !set || n.kind == Struct: // its fields have got it from their tags, or from around them
	case n.kind == Array:
		n.elem.jumps(set)
	default:
		n.jump = true
	}
}

// inherited is the tag for what lies inside.
func (t lerpTag) inherited() lerpTag { t.own = false; return t }
