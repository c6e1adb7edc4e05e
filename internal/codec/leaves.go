package codec

import "time"

// LeafInfo describes one value that changes separately, for people and for renderers.
type LeafInfo struct {
	Name      string // the path in Go
	Type      string // the kind, as in the text of a type
	Read      string // the read rule, "" for all clients
	Lerp      Lerp
	Teleport  bool          // when it changes, the whole object steps
	Interval  time.Duration // 0: none
	Threshold float64       // in the field's unit, of a quaternion in degrees; 0: none
	Weight    float64       // 1 by default
}

// DescribeLeaves describes all leaves, by index.
func (p *Plan) DescribeLeaves() []LeafInfo {
	infos := make([]LeafInfo, len(p.leaves))
	for i := range p.leaves {
		l := &p.leaves[i]
		infos[i] = LeafInfo{Name: l.name, Type: l.kind.String(), Read: l.read, Lerp: l.lerp, Weight: p.weights[i]}
		if g := p.groupOf(i); g != nil {
			infos[i].Interval = g.interval
		}
	}
	for _, i := range p.teleports {
		infos[i].Teleport = true
	}
	for _, g := range p.gaps {
		infos[g.leaf].Threshold = g.value
	}
	return infos
}

// TypeOf returns the type text of the leaf with a name, or "" if there is none.
func (p *Plan) TypeOf(name string) string {
	for i := range p.leaves {
		if p.leaves[i].name == name {
			return p.layout.leaf(&i).String()
		}
	}
	return ""
}

// leaf returns the i-th leaf in t; if there are fewer, it returns nil and subtracts their number
// from i.
func (t *Type) leaf(i *int) *Type {
	switch t.Kind {
	case Struct:
		for f := range t.Fields {
			if l := t.Fields[f].Type.leaf(i); l != nil {
				return l
			}
		}
		return nil
	case Array:
		for range t.Max {
			if l := t.Elem.leaf(i); l != nil {
				return l
			}
		}
		return nil
	}
	if *i == 0 {
		return t
	}
	*i--
	return nil
}
