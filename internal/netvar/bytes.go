package netvar

import (
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// spent counts the bytes of all clients' records: by class exactly, by field from a sample. The
// size of each field is known only during encoding, which happens once for all clients, so exact
// counts per client would cost more than sending.
type spent struct {
	classes []uint64   // bits by class; the last element counts despawns
	fields  [][]uint64 // bytes by class: the owner, then each leaf
	gap     uint32     // records until the next sample
	random  uint32
	scratch wire.BitWriter
}

// sampleEvery is the average number of records per sample; a power of two. The gaps between samples
// are random: with a fixed gap, a world with a cycle of records would always sample the same
// objects.
const sampleEvery = 1024

func newSpent(t *state.Table) spent {
	s := spent{classes: make([]uint64, len(t.Classes())+1), gap: 1, random: 1}
	for _, c := range t.Classes() {
		s.fields = append(s.fields, make([]uint64, 1+c.Plan().Leaves()))
	}
	return s
}

// SpentOn returns the bytes of the records of a class, for all clients together, or of despawns if
// c is nil.
func (w *World) SpentOn(c *state.Class) uint64 {
	if c == nil {
		return w.spent.classes[len(w.table.Classes())] / 8
	}
	return w.spent.classes[c.Index()] / 8
}

// SpentOnFields returns the bytes of the fields of a class, the owner first: see Class.FieldName.
// They are estimated from one record in sampleEvery, without the heads and masks of records. The
// slice is not a copy.
func (w *World) SpentOnFields(c *state.Class) []uint64 { return w.spent.fields[c.Index()] }

// sample adds the estimated bytes of the fields of a sent record, and draws the number of records
// until the next sample.
func (c *cutter) sample(n *candidate) {
	c.p.w.spent.draw()
	if n.rank == rankDespawn {
		return
	}
	w, o := c.p.w, c.p.w.objects.Slots[n.slot]
	withheld := c.p.View(int(n.slot)).Withheld
	from := basis{withheld: withheld}
	switch {
	case n.derived:
		from = c.basis(o)
	case !n.full:
		from = c.residual(o, &c.p.entries[n.slot], n.version).basis
	}
	var d delta
	d.find(w, o, from)
	w.spent.scratch.Reset(w.spent.scratch.Bytes()[:0])
	o.Plan().AddSizes(w.spent.fields[o.WireClass().Index()], sampleEvery/8, &w.spent.scratch, &d.now, &d.then, &d.trend)
}

// draw draws a gap of sampleEvery records on average, by xorshift.
func (s *spent) draw() {
	s.random ^= s.random << 13
	s.random ^= s.random >> 17
	s.random ^= s.random << 5
	s.gap = 1 + s.random%(2*sampleEvery-1)
}
