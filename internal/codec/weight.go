package codec

import (
	"fmt"
	"math/big"
)

// The tag weight sets the priority of a change of a field when the budget does not suffice for all
// changes. The codec only checks the number: it does not affect captured or sent values, and is not
// sent to clients.

// MinWeight and MaxWeight limit the weight of a field; without a tag it is 1. A weight of 0 is not
// permitted: the change would still be sent, but after all others.
const MinWeight, MaxWeight = 1.0 / 64, 64

func parseWeight(value string) (float64, error) {
	if r, ok := new(big.Rat).SetString(value); ok {
		if p, _ := r.Float64(); p >= MinWeight && p <= MaxWeight {
			return p, nil
		}
	}
	return 0, fmt.Errorf("weight=%s is not a number from 1/64 to %d; write for instance weight=4", value, MaxWeight)
}

// weigh sets the weight of the parts of n that become leaves; 0: none.
func (n *node) weigh(p float64) {
	switch {
	case p == 0:
	case n.kind == Struct: // the fields inside have the weight from their own or outer tags
	case n.kind == Array:
		n.elem.weigh(p)
	default:
		n.weight = p
	}
}

// Weights returns the weights of the leaves, by index, or nil if all are 1. The caller must not
// modify the slice.
func (p *Plan) Weights() []float64 {
	for _, v := range p.weights {
		if v != 1 {
			return p.weights
		}
	}
	return nil
}
