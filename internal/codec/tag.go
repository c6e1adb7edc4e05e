package codec

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Limits of a tag and defaults of what has none.
const (
	// DefaultMaxString holds a name or a line of chat.
	DefaultMaxString = 128
	// DefaultMaxBytes holds a small opaque value.
	DefaultMaxBytes = 256
	// DefaultMaxSlice is a hand of cards or an inventory.
	DefaultMaxSlice = 64
	// largestMax bounds what one field may claim: a message frame is 16 KiB, so more never travels.
	largestMax = 1 << 16
	// MaxLeaves bounds the changed-field mask of a record to 32 bytes.
	MaxLeaves = 256
)

// tag is one parsed `net` tag.
type tag struct {
	skip     bool
	max      int    // 0: none given
	num, den uint64 // of the step in lowest terms, 0 = none
	name     string // on the wire, "" = that of the field
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
		case "max":
			t.max, err = strconv.Atoi(value)
			if err != nil || t.max < 1 || t.max > largestMax {
				err = fmt.Errorf("max=%s is not a number from 1 to %d", value, largestMax)
			}
		case "name":
			if t.name = value; !validName(value) {
				err = fmt.Errorf("name=%s is not a name of letters, digits and underscores with at most %d bytes", value, MaxName)
			}
		default:
			err = fmt.Errorf("unknown tag key %q; the keys are quant, max and name, or the whole tag is \"-\"", key)
		}
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// setQuant keeps the step as a fraction of two integers that a float64 holds exactly: both
// sides then compute n*num/den with one rounding each, and 1/100 means one hundredth.
func (t *tag) setQuant(value string) error {
	r, ok := new(big.Rat).SetString(value)
	if !ok || r.Sign() <= 0 {
		return fmt.Errorf("quant=%s is not a positive step; write for instance quant=1/256 or quant=0.01", value)
	}
	if !r.Num().IsUint64() || r.Num().Uint64() > maxNum || !r.Denom().IsUint64() || r.Denom().Uint64() > maxDen {
		return errors.New("quant is beyond its range; a step lies between 2^-39 and 2^20")
	}
	t.num, t.den = r.Num().Uint64(), r.Denom().Uint64()
	return nil
}
