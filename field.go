package netloop

import (
	"time"

	"github.com/netloop/netloop/internal/codec"
)

// Lerp says how a field is to be drawn between two states, by the tag lerp= of the
// field. Without a tag floats are linear, quaternions turn, and all else steps. On a struct or
// array the tag holds for each number inside that can be drawn so.
//
// It is a hint to whoever draws, and of that side alone: it is not sent, and
// builds that differ in it play with each other.
type Lerp = codec.Lerp

// The ways to draw.
const (
	LerpNone     = codec.LerpStep     // the older state's, until the newer one is reached: lerp=none
	LerpLinear   = codec.LerpLinear   // on the straight line between both: lerp=linear, for integers too
	LerpAngle    = codec.LerpAngle    // in radians, the short way round: lerp=angle, for floats
	LerpDegrees  = codec.LerpDegrees  // in degrees, the short way round: lerp=degrees
	LerpRotation = codec.LerpRotation // the short way from one quaternion to the other
)

// Field describes one network variable of a class: a value that changes on its own.
type Field struct {
	Name      string        // the path in the struct, such as Pos.X
	Type      string        // what travels, such as float32, quat or slice
	Read      string        // the tag read=, empty for everybody
	Lerp      Lerp          // how it is to be drawn
	Interval  time.Duration // the least time between two changes that are sent, 0 is none
	Threshold float64       // the least change that is sent, in the field's unit; of a quaternion in degrees; 0 is none
	Priority  float64       // the tag priority=, 1 if there is none
}

// Fields describes the network variables of the class, in the order of the struct; a slice
// or map is one. Both sides can be asked, each for its own declaration.
func (k *Class[S]) Fields() []Field {
	var fields []Field
	for _, l := range k.c.nv.DescribeLeaves() {
		fields = append(fields, Field(l))
	}
	return fields
}
