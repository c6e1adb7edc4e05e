package netvar

import "fmt"

// explain calls Explain for the last change of an object and a client, and compares the answer with
// the mirror and the client's state.
func (m *model) explain(c *modelClient) error {
	if len(m.objects) == 0 {
		return nil
	}
	o := m.objects[int(m.tick)%len(m.objects)]
	slot := o.Slot()
	field := int(m.tick/7) % len(o.Fields)
	x := m.w.Explain(c.p, o, field)
	m.told[x.Why]++
	wrong := func(what string) error {
		return fmt.Errorf("%s of %v is explained as %+v, but %s", o.WireClass().FieldName(field), o.ID(), x, what)
	}
	e := m.mirror[m.tick][slot]
	visible, reads := e.views[c.index].since > 0, true
	if o.WireClass() == m.agent && field > 0 {
		reads = e.views[c.index].reads[partOf[field-1]]
	}
	if visible == (x.Why == WhyHidden) || visible && reads == (x.Why == WhyWithheld) {
		return wrong(fmt.Sprintf("visible is %v and readable %v", visible, reads))
	}
	switch x.Why {
	case WhyUnedited, WhyUnchanged, WhyAcked:
		if got, ok := c.r.Get(o.ID()); !ok || got.Changed() < x.Changed || got.Life != x.Visible {
			return wrong(fmt.Sprintf("the client does not have it: %v", ok))
		}
	case WhySent, WhyInFlight:
		if len(x.Packets) == 0 && !c.p.large.slots.Has(slot) || x.Version < x.Changed || (x.Sent == m.tick) != (x.Why == WhySent) {
			return wrong("nothing carries it")
		}
	case WhyNoSnapshot:
		if c.p.tick == m.tick {
			return wrong("there was a snapshot")
		}
	case WhyShed, WhyBudget, WhyPackets, WhyStreamFull:
		if !c.p.pending.Has(slot) || c.p.tick != m.tick || c.p.detailed(slot).last == uint32(m.tick) && c.p.detailed(slot).sent != 0 {
			return wrong("it is not owed, or was sent")
		}
	case WhyHidden, WhyWithheld, WhyStream:
	default:
		return wrong("that cannot be after a snapshot")
	}
	return nil
}
