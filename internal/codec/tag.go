package codec

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/netloop/netloop/internal/codec/quat"
)

// Limits of a tag and defaults of a field without one.
const (
	// DefaultMaxString is in bytes: enough for a name or a line of chat.
	DefaultMaxString = 128
	// DefaultMaxBytes holds a small opaque value.
	DefaultMaxBytes = 256
	// DefaultMaxSlice is in elements: enough for a hand of cards or an inventory.
	DefaultMaxSlice = 64
	// largestMax limits the max of one field: a message frame is 16 KiB, so larger values are never
	// sent.
	largestMax = 1 << 16
	// MaxLeaves limits the leaves of a struct, so that the changed-field mask of a record has at
	// most 32 bytes.
	MaxLeaves = 256
)

// tag is one parsed `net` tag.
type tag struct {
	skip     bool
	max      int      // 0: not set
	num, den uint64   // the step in lowest terms; 0: none
	from, to *big.Rat // the range; nil: none
	quat     int      // bits of a component; 0: not a quaternion
	each     int      // max of the strings in a slice or map; 0: not set
	key      string   // the field that identifies the elements of a slice
	name     string   // name on the wire; "": the name of the field
	hold     holdTag  // restricts captures (hold.go)
	lerp     lerpTag  // interpolation between two versions (lerp.go)
	teleport bool     // when it changes, the whole object steps (lerp.go)
	read     string   // the read rule, or ReadAll; "": the rule of the outer field
	weight   float64  // weight of a change (weight.go); 0: the weight of the outer field
}

func parseTag(s string) (tag, error) {
	var t tag
	if s == "" {
		return t, nil
	}
	if s == "-" {
		t.skip = true
		return t, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch key {
		case "quant":
			err = t.setQuant(value)
		case "range":
			err = t.setRange(value)
		case "quat":
			t.quat, err = strconv.Atoi(value)
			if err != nil || t.quat < quat.MinBits || t.quat > quat.MaxBits {
				err = fmt.Errorf("quat=%s is not a number of bits from %d to %d", value, quat.MinBits, quat.MaxBits)
			}
		case "max":
			t.max, err = parseMax(key, value)
		case "each":
			t.each, err = parseMax(key, value)
		case "key":
			if t.key = value; value == "" {
				err = errors.New("key without a field; write for instance key=ID")
			}
		case "read":
			if t.read = value; !validName(value) {
				err = fmt.Errorf("read=%s is not all, owner or the name of a rule, of letters, digits and underscores with at most %d bytes", value, MaxName)
			}
		case "name":
			if t.name = value; !validName(value) {
				err = fmt.Errorf("name=%s is not a name of letters, digits and underscores with at most %d bytes", value, MaxName)
			}
		case "interval", "threshold":
			err = t.hold.set(key, value)
		case "lerp":
			err = t.lerp.parse(value)
		case "teleport":
			if t.teleport = true; value != "" {
				err = fmt.Errorf("teleport=%s: write teleport alone", value)
			}
		case "weight":
			t.weight, err = parseWeight(value)
		default:
			err = fmt.Errorf("unknown tag key %q; the keys are quant, range, quat, max, each, key, name, read, interval, threshold, lerp, teleport and weight, or the whole tag is \"-\"", key)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

func parseMax(key, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > largestMax {
		return 0, fmt.Errorf("%s=%s is not a number from 1 to %d", key, value, largestMax)
	}
	return n, nil
}

// setQuant stores the step as a fraction of two integers that a float64 represents exactly: both
// sides then compute n*num/den with the same rounding, and 1/100 is exactly one hundredth.
func (t *tag) setQuant(value string) error {
	r, ok := new(big.Rat).SetString(value)
	if !ok || r.Sign() <= 0 {
		return fmt.Errorf("quant=%s is not a positive step; write for instance quant=1/256 or quant=0.01", value)
	}
	if !r.Num().IsUint64() || r.Num().Uint64() > maxNum || !r.Denom().IsUint64() || r.Denom().Uint64() > maxDen {
		return fmt.Errorf("quant=%s is no fraction of 1 to %d over 1 to %d; write for instance quant=1/256 or quant=0.01", value, uint64(maxNum), uint64(maxDen))
	}
	t.num, t.den = r.Num().Uint64(), r.Denom().Uint64()
	return nil
}

// setRange stores the range as written; its number of steps is computed once the step is parsed.
func (t *tag) setRange(value string) error {
	low, high, ok := strings.Cut(value, ":")
	from, fine := new(big.Rat).SetString(low)
	to, good := new(big.Rat).SetString(high)
	if !ok || !fine || !good || from.Cmp(to) >= 0 {
		return fmt.Errorf("range=%s is not two numbers, the smaller one first; write for instance range=-100:100", value)
	}
	t.from, t.to = from, to
	return nil
}

// steps divides a number by the step of the tag, and rounds down to whole steps.
func (t *tag) steps(f *big.Rat) *big.Int {
	s := new(big.Rat).Mul(f, new(big.Rat).SetFrac(new(big.Int).SetUint64(t.den), new(big.Int).SetUint64(t.num)))
	// Div is Euclidean division, which rounds down for a positive divisor.
	return new(big.Int).Div(s.Num(), s.Denom())
}

// quantise applies the step and the range of its tag to the node of a float. A range that is not a
// whole number of steps is extended outwards to the next step.
func (n *node) quantise(t tag) error {
	wide := n.kind == Float64
	switch {
	case t.num == 0 && t.from == nil:
		return nil
	case t.num == 0:
		return errors.New("range without a step; add quant, for instance quant=1/256")
	case t.from == nil && wide:
		n.kind = Quant64
	case t.from == nil:
		n.kind = Quant32
	case wide:
		n.kind = Range64
	default:
		n.kind = Range32
	}
	n.num, n.den = t.num, t.den
	if t.from == nil {
		return nil
	}
	low, high := t.steps(t.from), t.steps(new(big.Rat).Neg(t.to))
	high.Neg(high) // rounded up
	limit := big.NewInt(n.kind.maxSteps())
	if low.CmpAbs(limit) > 0 || high.CmpAbs(limit) > 0 {
		return fmt.Errorf("range reaches beyond %v steps of its quant from 0; make the step larger or the range smaller", limit)
	}
	n.low, n.high = low.Int64(), high.Int64()
	return nil
}
