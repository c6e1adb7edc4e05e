package interest

import (
	"cmp"
	"slices"

	"github.com/netloop/netloop/internal/netvar/bitset"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The rules that a client may not read are the same for many clients and objects: each of a hundred
// players may read its own object fully and the others in part. So they are stored per block of 64
// slots, as sets of slots with the same withheld rules, and operations on neighbouring slots use
// these sets.

// Masked is a set of slots of a block with the same withheld rules.
type Masked struct {
	Slots    uint64
	Withheld state.Rules
}

// Views stores, for one client, the withheld rules of each object and the ticks at which they
// changed. It is empty for a client that may read all fields.
type Views struct {
	blocks [][]Masked // by block, sorted by withheld, which is not 0
	turned bitset.Set // slots with a change of view within the lifetime
	since  []uint64   // by slot: tick of that change
}

// Block returns the views of a block, without the slots of which all fields may be read.
func (s *Views) Block(k int) []Masked {
	if k < len(s.blocks) {
		return s.blocks[k]
	}
	return nil
}

// Withheld returns the rules withheld of a slot.
func (s *Views) Withheld(slot int) state.Rules {
	for _, m := range s.Block(slot >> 6) {
		if m.Slots>>(slot&63)&1 != 0 {
			return m.Withheld
		}
	}
	return 0
}

// Set sets the read rules that are withheld from the client for the object of a slot.
func (s *Views) Set(slot int, withheld state.Rules) {
	k, bit := slot>>6, uint64(1)<<(slot&63)
	list := s.Block(k)
	for i := range list {
		if list[i].Slots &^= bit; list[i].Slots == 0 {
			list = slices.Delete(list, i, i+1)
			s.blocks[k] = list
			break
		}
	}
	if withheld == 0 {
		return
	}
	for len(s.blocks) <= k {
		s.blocks = append(s.blocks, nil)
	}
	i, there := slices.BinarySearchFunc(list, withheld, func(m Masked, w state.Rules) int { return cmp.Compare(m.Withheld, w) })
	if !there {
		list = slices.Insert(list, i, Masked{Withheld: withheld})
	}
	list[i].Slots |= bit
	s.blocks[k] = list
}

// turn records that the client's view of a slot's object changes at a tick, after which the object
// counts as new.
func (s *Views) turn(slot int, tick uint64) {
	for len(s.since) <= slot {
		s.since = append(s.since, 0)
	}
	s.since[slot] = tick
	s.turned.Add(slot)
}

// end removes the view of a slot at the end of its lifetime.
func (s *Views) end(slot int) {
	s.Set(slot, 0)
	s.turned.Remove(slot)
}

// MaxViews bounds the different sets of withheld rules in one run of records (netvar/run.go). Runs
// with more sets are not shared.
const MaxViews = 3

// Among returns the views of the masked slots of a block. It reports false if there are more than
// MaxViews.
func (s *Views) Among(k int, mask uint64) (list [MaxViews]Masked, ok bool) {
	n := 0
	for _, m := range s.Block(k) {
		if m.Slots &= mask; m.Slots == 0 {
			continue
		}
		if n == MaxViews {
			return list, false
		}
		list[n] = m
		n++
	}
	return list, true
}

// View returns the view of a slot: usually the zero view, which has all fields.
func (s *Views) View(slot int) state.View {
	v := state.View{Withheld: s.Withheld(slot)}
	if s.turned.Has(slot) {
		v.Since = s.since[slot]
	}
	return v
}

// Others returns the slots of a block, among those of mask, for which the withheld rules of the
// client differ from those in a list of views.
func (s *Views) Others(k int, mask uint64, views *[MaxViews]Masked) (slots uint64) {
	same := uint64(0)
	for _, m := range views {
		slots |= m.Slots
	}
	for _, m := range s.Block(k) {
		slots |= m.Slots & mask
		for _, theirs := range views {
			if theirs.Withheld == m.Withheld {
				same |= theirs.Slots & m.Slots
			}
		}
	}
	return slots &^ same
}

// Readable returns the changed slots of a block with a readable change. byRule has the changed
// slots by the rule of the changed fields.
func (s *Views) Readable(k int, changed uint64, byRule []bitset.Set) uint64 {
	for _, m := range s.Block(k) {
		if changed&m.Slots == 0 {
			continue
		}
		seen := uint64(0)
		for rule, b := range byRule {
			if m.Withheld>>rule&1 == 0 {
				seen |= b.Word(k)
			}
		}
		changed &^= m.Slots &^ seen
	}
	return changed
}
