package codec

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec/quat"
)

// The tags interval and threshold hold changes back at capture:
//
//   - A change smaller than the threshold from the last captured value is not captured. The
//     captured value is unchanged, so a slow drift is measured from it, and is captured when it
//     adds up.
//   - The fields under one interval are captured together, and not again before the interval has
//     passed.

// MaxInterval limits the tag interval: a minute is far longer than any useful throttle of state.
const MaxInterval = time.Minute

// holdTag contains the tags of capturing.
type holdTag struct {
	interval  time.Duration // 0: none
	threshold *big.Rat      // nil: none
}

func (h *holdTag) set(key, value string) error {
	if key == "interval" {
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || d > MaxInterval {
			return fmt.Errorf("interval=%s is not a time above 0 and of at most %v; write for instance interval=100ms", value, MaxInterval)
		}
		h.interval = d
		return nil
	}
	r, ok := new(big.Rat).SetString(value)
	if !ok || r.Sign() <= 0 {
		return fmt.Errorf("threshold=%s is not a positive number; write for instance threshold=0.5", value)
	}
	h.threshold = r
	return nil
}

// holdsThreshold reports whether the node, or a number inside it, has a threshold.
func (n *node) holdsThreshold() bool {
	if n.hold.threshold != nil || n.kind == Array && n.elem.holdsThreshold() {
		return true
	}
	for i := range n.fields {
		if n.kind == Struct && n.fields[i].node.holdsThreshold() {
			return true
		}
	}
	return false
}

// setThreshold sets the threshold of a node. It returns an error if no change of the field could
// reach the threshold, or if each change would. It has no effect if r is nil, or for bools,
// references and instants.
func (n *node) setThreshold(r *big.Rat) error {
	step, span := new(big.Rat), new(big.Rat) // step and span of the field's values
	switch k := n.kind; {
	case r == nil || k == Bool || k == RefKind || k == InstantKind:
		return nil
	case k == Quat:
		if r.Cmp(big.NewRat(180, 1)) > 0 {
			return fmt.Errorf("threshold of %v for a quaternion, whose angles are of at most 180 degrees; make it smaller", r.RatString())
		}
		n.hold.threshold = r
		return nil
	case k == Float32 || k == Float64:
		if f, _ := r.Float64(); f == 0 || math.IsInf(f, 0) {
			return errors.New("threshold is outside the range of a float, 5e-324 to 1.7e308")
		}
		n.hold.threshold = r
		return nil
	case k.Steps():
		step.SetFrac(new(big.Int).SetUint64(n.num), new(big.Int).SetUint64(n.den))
		low, high := -n.kind.maxSteps(), n.kind.maxSteps()
		if k.ranged() {
			low, high = n.low, n.high
		}
		span.Mul(step, new(big.Rat).SetInt64(high-low))
	default:
		l := leaf{kind: k}
		_, most := l.interval()
		step.SetInt64(1)
		span.SetInt(new(big.Int).SetUint64(most))
	}
	switch {
	case r.Cmp(step) <= 0:
		return fmt.Errorf("threshold of %v for a field in steps of %v, each of which would pass it; make it larger or remove it", r.RatString(), step.RatString())
	case r.Cmp(span) > 0:
		return fmt.Errorf("threshold of %v, which is further than the field can change, %v; make it smaller", r.RatString(), span.RatString())
	}
	n.hold.threshold = r
	return nil
}

// gap is the threshold of a leaf in units of its word.
type gap struct {
	leaf  int
	value float64 // as it was declared
	units uint64  // of an integer and of a count of steps: the smallest captured change
	width float64 // of a float: the least difference; of a quaternion: the least chord
}

// gap appends the threshold, if any, of l, which becomes the next leaf of the plan.
func (w *walker) gap(p *Plan, l *leaf, n *node) {
	r := n.hold.threshold
	if r == nil || l.absent || w.lists > 0 {
		return
	}
	g := gap{leaf: len(p.leaves)}
	g.value, _ = r.Float64()
	switch l.kind {
	case Quat:
		// rotations that are an angle a apart have a chord of 2·sin(a/4)
		g.width = 2 * math.Sin(g.value/4*math.Pi/180)
	case Float32, Float64:
		g.width = g.value
	default:
		units := new(big.Rat).Set(r)
		if l.kind.Steps() {
			units.Mul(units, new(big.Rat).SetFrac(new(big.Int).SetUint64(n.den), new(big.Int).SetUint64(n.num)))
		}
		up := new(big.Int).Add(units.Num(), units.Denom())
		up.Sub(up, big.NewInt(1)).Div(up, units.Denom()) // rounded up
		g.units = up.Uint64()
	}
	p.gaps = append(p.gaps, g)
}

// holds reports whether the difference between the words from and w of leaf l is below the
// threshold, so that w is not captured.
func (g *gap) holds(l *leaf, w, from uint64) bool {
	switch {
	case l.kind == Float32:
		return math.Abs(float64(math.Float32frombits(uint32(w)))-float64(math.Float32frombits(uint32(from)))) < g.width
	case l.kind == Float64:
		return math.Abs(math.Float64frombits(w)-math.Float64frombits(from)) < g.width
	case l.kind == Quat:
		return w != 0 && from != 0 && chord(w, from, l.max) < g.width
	case l.kind >= Uint8 && l.kind <= Uint:
		return max(w, from)-min(w, from) < g.units
	default:
		a, b := int64(w), int64(from)
		return uint64(max(a, b))-uint64(min(a, b)) < g.units
	}
}

// chord returns the distance between two rotations as points of the unit sphere; q and -q count as
// the same point.
func chord(a, b uint64, n int) float64 {
	var p, q [4]float32
	quat.Unpack(&p, a, n)
	quat.Unpack(&q, b, n)
	var minus, plus float64
	for i := range p {
		d, s := float64(p[i])-float64(q[i]), float64(p[i])+float64(q[i])
		minus += d * d
		plus += s * s
	}
	return math.Sqrt(min(minus, plus))
}

// group contains the leaves under one interval that the same clients may read. Leaves with another
// read rule are in another group. Otherwise a change that is hidden from a client would delay a
// change that the client may read, and the delay would reveal it.
type group struct {
	at       int // its index in the plan
	interval time.Duration
	leaves   []int
}

// group makes the groups of a node with an interval: one for each read rule of the leaves from
// index from on. Leaves in a group of an inner field remain in that group. Inside a slice or map it
// makes no groups, and stores the path of a node with such a tag for Misplaced.
func (w *walker) group(p *Plan, n *node, path string, from int) {
	inner := n.hold.threshold != nil && n.kind != Struct && n.kind != Array
	if w.lists > 0 {
		if (n.hold.interval > 0 || inner || n.weight != 0) && w.inList == "" {
			w.inList = path
		}
		return
	}
	if n.hold.interval == 0 {
		return
	}
	for i := from; i < len(p.leaves); i++ {
		if p.leaves[i].absent || p.groupOf(i) != nil {
			continue
		}
		g := group{at: len(p.groups), interval: n.hold.interval}
		for k := i; k < len(p.leaves); k++ {
			if l := &p.leaves[k]; !l.absent && l.read == p.leaves[i].read && p.groupOf(k) == nil {
				g.leaves = append(g.leaves, k)
			}
		}
		p.groups = append(p.groups, g)
	}
}

// groupOf returns the group of leaf i, or nil.
func (p *Plan) groupOf(i int) *group {
	for k := range p.groups {
		if slices.Contains(p.groups[k].leaves, i) {
			return &p.groups[k]
		}
	}
	return nil
}

// Misplaced returns the path of a field within the elements of a slice or map that has an interval,
// a threshold or a weight; it is empty if there is none. Slices and maps are captured as a whole,
// so the tag could have no effect.
func (p *Plan) Misplaced() string { return p.inList }

// Holds reports whether any field has an interval or a threshold.
func (p *Plan) Holds() bool { return len(p.gaps) > 0 || len(p.groups) > 0 }

// Intervals returns the intervals of the groups.
func (p *Plan) Intervals() (all []time.Duration) {
	for _, g := range p.groups {
		all = append(all, g.interval)
	}
	return all
}

// Held counts the changes that a capture held back.
type Held struct {
	Small int    // fields with a change below their threshold
	Early int    // fields within their interval
	Due   uint64 // tick at which the first of those intervals ends; 0: none
}

// Hold resets fields of now to last if the change is below the threshold, or if the interval has
// not passed at tick. ticks contains the tick of the last capture of each leaf, intervals the
// lengths of Intervals in ticks.
func (p *Plan) Hold(now, last *Values, ticks []uint64, tick uint64, intervals []uint64) (held Held) {
	for i := range p.gaps {
		g := &p.gaps[i]
		l := &p.leaves[g.leaf]
		if w := now.Words[l.pos]; w != last.Words[l.pos] && g.holds(l, w, last.Words[l.pos]) {
			now.Words[l.pos] = last.Words[l.pos]
			held.Small++
		}
	}
	for i := range p.groups {
		g := &p.groups[i]
		due := g.due(ticks, intervals[i])
		if due <= tick {
			continue
		}
		for _, k := range g.leaves {
			l := &p.leaves[k]
			if l.equal(now, last) {
				continue
			}
			if held.Early++; held.Due == 0 || due < held.Due {
				held.Due = due
			}
			l.keep(now, last)
		}
	}
	return held
}

// due returns the tick at which the group may be captured again.
func (g *group) due(ticks []uint64, interval uint64) (due uint64) {
	for _, k := range g.leaves {
		due = max(due, ticks[k]+interval)
	}
	return due
}

// HeldLeaf returns the reason why Hold would hold back leaf i: small is true if its change is below
// the threshold. Otherwise due is the tick at which its interval ends, or 0 if it may be captured
// or has not changed.
func (p *Plan) HeldLeaf(i int, now, last *Values, ticks []uint64, tick uint64, intervals []uint64) (small bool, due uint64) {
	l := &p.leaves[i]
	if l.equal(now, last) {
		return false, 0
	}
	for k := range p.gaps {
		if g := &p.gaps[k]; g.leaf == i && g.holds(l, now.Words[l.pos], last.Words[l.pos]) {
			return true, 0
		}
	}
	g := p.groupOf(i)
	if g == nil {
		return false, 0
	}
	if due = g.due(ticks, intervals[g.at]); due <= tick {
		return false, 0
	}
	return false, due
}

// CaptureLeaf is Capture for leaf i only.
func (p *Plan) CaptureLeaf(i int, v unsafe.Pointer, to *Values) {
	l := &p.leaves[i]
	if l.kind.Blob() {
		var rep report
		to.Blobs[l.pos] = l.appendBlob(to.Blobs[l.pos][:0], v, &rep)
	} else {
		to.Words[l.pos], _ = l.load(v)
	}
}
