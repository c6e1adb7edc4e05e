package codec

import (
	"fmt"
	"math/big"
)

// The tag priority says how much a change of a field is needed where not everything fits. To the codec it is a number
// that it checks: it changes nothing that is captured or sent, and travels in no table.

// MinPriority and MaxPriority bound the priority of a field; without a tag it is 1. 0 is not among them: a change that
// nobody needs would be owed, and go when everything else has.
const MinPriority, MaxPriority = 1.0 / 64, 64

func parsePriority(value string) (float64, error) {
	if r, ok := new(big.Rat).SetString(value); ok {
		if p, _ := r.Float64(); p >= MinPriority && p <= MaxPriority {
			return p, nil
		}
	}
	return 0, fmt.Errorf("priority=%s is not a number from 1/64 to %d; write for instance priority=4", value, MaxPriority)
}

// prioritise gives the parts of n that become leaves a priority; 0 is none.
func (n *node) prioritise(p float64) {
	switch {
	case p == 0:
	case n.kind == Struct: // its fields have got it from their tags, or from around them
	case n.kind == Array:
		n.elem.prioritise(p)
	default:
		n.priority = p
	}
}

// Priorities are those of the leaves, by their numbers, or nil if all have 1. The caller must not change the slice.
func (p *Plan) Priorities() []float64 {
	for _, v := range p.priorities {
		if v != 1 {
			return p.priorities
		}
	}
	return nil
}
