package codec

import (
	"fmt"
	"math/big"
)

// The tag weight says how much a change of a field is needed where not everything fits. To the
// codec it is a number that it checks: it changes nothing that is captured or sent, and travels in
// no table.

// MinWeight and MaxWeight bound the weight of a field; without a tag it is 1. 0 is not among them:
// a change that nobody needs would be owed, and go when everything else has.
const MinWeight, MaxWeight = 1.0 / 64, 64

func parseWeight(value string) (float64, error) {
	if r, ok := new(big.Rat).SetString(value); ok {
		if p, _ := r.Float64(); p >= MinWeight && p <= MaxWeight {
			return p, nil
		}
	}
	return 0, fmt.Errorf("weight=%s is not a number from 1/64 to %d; write for instance weight=4", value, MaxWeight)
}

// weigh gives the parts of n that become leaves a weight; 0 is none.
func (n *node) weigh(p float64) {
	switch {
	case p == 0:
	case n.kind == Struct: // its fields have got it from their tags, or from around them
	case n.kind == Array:
		n.elem.weigh(p)
	default:
		n.weight = p
	}
}

// Weights are those of the leaves, by their numbers, or nil if all have 1. The caller must not
// change the slice.
func (p *Plan) Weights() []float64 {
	for _, v := range p.weights {
		if v != 1 {
			return p.weights
		}
	}
	return nil
}
