package netvar

import "github.com/netloop/netloop/internal/netvar/bitset"

// lifetimes is a Peer as the interest.Client that receives the decisions of package interest.
type lifetimes Peer

// Begin implements interest.Client.
func (l *lifetimes) Begin(slot int, tick uint64, later bool) {
	p := (*Peer)(l)
	if p.publish(slot, tick); later {
		p.entries[slot].full = fullVisible
	}
}

// End implements interest.Client. A change of the object is no longer pending.
func (l *lifetimes) End(slot int, tick uint64) { (*Peer)(l).retire(slot, tick) }

// Remask implements interest.Client. All fields of the object are pending.
func (l *lifetimes) Remask(slot int) {
	p := (*Peer)(l)
	e := p.detailed(slot)
	e.forget()
	e.sent, e.full = 0, fullMasked
	p.pending.Add(slot)
	p.forgetCopies(slot>>6, 1<<(slot&63))
}

// Shown implements interest.Client.
func (l *lifetimes) Shown(slot int) bool {
	return slot < len(l.entries) && l.entries[slot].phase == shown
}

// addPending marks changed slots as pending, unless they are hidden.
func (p *Peer) addPending(moved bitset.Set) {
	if len(p.Hidden) == 0 {
		p.pending.Or(moved)
		p.sentOnce.Sub(moved)
		p.sentTwice.Sub(moved)
		return
	}
	p.pending.OrBut(moved, p.Hidden)
	p.sentOnce.SubBut(moved, p.Hidden)
	p.sentTwice.SubBut(moved, p.Hidden)
}
