package simulation

import "github.com/netloop/netloop"

// target returns the clients that see an item, or the item that is spawned if it is nil.
func (h *gameRoom) target(it item, a audience) netloop.Target {
	joined := len(h.items)%2 == 0 // The target is joined of others.
	switch {
	case a == itsOwner:
		return netloop.OwnerOf(it)
	case a == firstSide || a == secondSide:
		return netloop.InGroup(h.sides[a-firstSide])
	case a == itsGuild && joined:
		return netloop.Where(h.inGuild).And(netloop.Everyone()).Or(netloop.To())
	case a == itsGuild:
		return netloop.Where(h.inGuild)
	case a == nobody && joined:
		return netloop.Everyone().And(netloop.To())
	case a == nobody:
		return netloop.To()
	case joined:
		return netloop.To().Or(netloop.Everyone())
	}
	return netloop.Everyone()
}

// rightsOf returns the rights of a client to an item, and whether it sees it; sure is false in the
// margin of the grid.
func (h *gameRoom) rightsOf(c *netloop.Client, it item) (r rights, sees, sure bool) {
	r = rights{owner: it.Owner() == c.ID(), guild: h.guild[c.ID()]}
	if side := it.side(); side >= 0 {
		r.side = h.sides[side].Has(c)
	}
	switch a := *it.watchers(); a {
	case itsOwner:
		sees = r.owner
	case firstSide, secondSide:
		sees = h.sides[a-firstSide].Has(c)
	case itsGuild:
		sees = r.guild
	default:
		sees = a == everyone
	}
	x, y, placed := it.place()
	if !placed || h.grid == nil || !sees || r.owner && !h.rules.HideFromOwner {
		return r, sees, true
	}
	m := h.of.Of(c)
	views := m.views
	if m.pawn != nil && m.pawn.alive() {
		px, py, _ := m.pawn.place()
		views = append(views[:len(views):len(views)], [2]float64{px, py})
	}
	near, far := false, true
	for _, v := range views {
		gap := max(abs(v[0]-x), abs(v[1]-y))
		near = near || gap <= gridRadius*0.7
		far = far && gap > gridRadius+gridMargin+3*gridCell
	}
	return r, near, near || far
}

func abs(v float64) float64 { return max(v, -v) }
