package netem

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Fate is the outcome of a datagram.
type Fate int

// Each datagram that an Exchange is given has exactly one of the fates from Passed to Overflow.
const (
	Passed   Fate = iota
	Lost          // by Loss
	Queue         // the router's buffer was full
	Blackout      // sent into a Hole
	Unbound       // to an address that its client no longer has
	Overflow      // beyond the emulator's own limits

	// Passed datagrams may have these besides.
	Duplicated
	Reordered
	Corrupted

	fates
)

var fateNames = [fates]string{"passed", "lost", "queue", "hole", "unbound", "overflow", "duplicated", "reordered", "corrupted"}

// String returns the word for a fate in metrics and summaries.
func (f Fate) String() string { return fateNames[f] }

// Stats counts the outcomes of datagrams. Any goroutine may read it, and several Conns may share
// one.
type Stats struct {
	packets [directions][fates]atomic.Uint64
	Rebinds atomic.Uint64
}

func (s *Stats) add(d Direction, f Fate) { s.packets[d][f].Add(1) }

// Get returns the number of datagrams with a fate.
func (s *Stats) Get(d Direction, f Fate) uint64 { return s.packets[d][f].Load() }

// Each calls fn with every count.
func (s *Stats) Each(fn func(d Direction, f Fate, n uint64)) {
	for d := range Direction(directions) {
		for f := range fates {
			fn(d, f, s.Get(d, f))
		}
	}
}

// String returns the nonzero counts in one line.
func (s *Stats) String() string {
	var b strings.Builder
	for d := range Direction(directions) {
		fmt.Fprintf(&b, "%s:", d)
		sep := " "
		for f := range fates {
			if n := s.Get(d, f); n > 0 || f == Passed {
				fmt.Fprintf(&b, "%s%d %s", sep, n, f)
				sep = ", "
			}
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%d rebinds", s.Rebinds.Load())
	return b.String()
}
