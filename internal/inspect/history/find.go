package history

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Found is a tick in which a query matched.
type Found struct {
	Tick   uint64          `json:"tick"`   // in which the field got the value
	Object string          `json:"object"` // slot and generation
	Field  string          `json:"field"`  // name of the field
	Value  json.RawMessage `json:"value"`  // of the field
}

const (
	// A search ends after the tick in which the number of matches reaches maxFound. The matches of
	// that tick may exceed maxFound by maxInTick; further ones are only counted.
	maxFound, maxInTick = 1000, 1000
	// checkEvery is the number of ticks between two checks whether the context of a search has
	// ended.
	checkEvery = 256
)

// search is a running Find.
type search struct {
	query
	state *State
	met   []state.ID // by slot: the object for which the comparison is true
	tick  uint64

	answer *FindAnswer
}

// FindAnswer is the answer of a query. More is the number of further matches in the last tick that
// did not fit. Next is the tick at which a further search continues, 0 at the end of the known
// ticks.
type FindAnswer struct {
	Query string  `json:"query"` // the asked one
	Found []Found `json:"found"` // matches
	More  int     `json:"more"`
	Next  uint64  `json:"next"`
}

// Find returns the first matches of a query in the ticks from from to to. A from of 0 is the first
// known tick, a to of 0 the last one. Find ends early if ctx does.
func (r *Recording) Find(ctx context.Context, text string, from, to uint64) (FindAnswer, error) {
	q, err := parseQuery(text, r.store.classes)
	if err != nil {
		return FindAnswer{}, refusef(http.StatusBadRequest, "%v", err)
	}
	for _, field := range q.fields {
		if q.class.Withheld(field, r.rules(q.class)) {
			return FindAnswer{}, refusef(http.StatusForbidden, "%s.%s has a read rule: its values need a token with the role write", q.class.Name(), q.class.FieldName(field))
		}
	}
	end := r.store.ticks.len()
	if to != 0 && to+1 != 0 {
		end = min(end, r.store.from(to+1))
	}
	a := FindAnswer{Query: text, Found: []Found{}}
	next, err := r.store.find(ctx, q, r.store.from(from), end, &a)
	if next < end {
		a.Next = r.store.ticks.at(next).tick
	}
	return a, err
}

// find adds the matches in the ticks at the positions from from to to, without to. It returns the
// position of the next tick to search, which is before to if the limit was reached or ctx has
// ended.
func (s *store) find(ctx context.Context, q query, from, to int, a *FindAnswer) (next int, err error) {
	run := &search{query: q, state: &State{classes: s.classes}, met: make([]state.ID, packet.MaxSlots), answer: a}
	if from >= to {
		return to, nil
	}
	if from > 0 {
		if run.state, err = s.state(from - 1); err != nil {
			return from, err
		}
		run.begin()
	}
	next = to
	err = s.each(from, to, func(position int, frame []byte) (bool, error) {
		if position%checkEvery == 0 && position > from && ctx.Err() != nil || len(a.Found) >= maxFound {
			next = position
			return false, nil
		}
		run.tick = s.ticks.at(position).tick
		return true, run.state.applyOnly(frame, q.class, run.note)
	})
	return next, err
}

// begin evaluates the comparison before the first tick of the search.
func (r *search) begin() {
	for slot, o := range r.state.slots {
		if o == nil || o.Class != r.class {
			continue
		}
		if r.op != changed && r.test(r.value(o)) {
			r.met[slot] = o.ID
		}
	}
}

// value returns the compared value of an object.
func (r *search) value(o *Object) any {
	if r.fields[0] == 0 {
		return o.Owner()
	}
	return o.Class.Plan().Scalar(r.fields[0]-1, &o.Values)
}

// note is called for each object of the class that a tick has added or changed.
func (r *search) note(o *Object, mask []byte, owner bool) {
	if r.id != 0 && o.ID != r.id {
		return
	}
	if r.op == changed {
		if mask != nil {
			r.noteChanged(o, mask, owner)
		}
		return
	}
	slot := o.ID.Slot()
	switch was := r.met[slot] == o.ID; {
	case mask != nil && !touches(r.fields[0], mask, owner):
	case !r.test(r.value(o)):
		r.met[slot] = 0
	case !was:
		r.met[slot] = o.ID
		r.add(o, r.fields[0])
	}
}

// touches reports whether a field is among the changed ones.
func touches(field int, mask []byte, owner bool) bool {
	if field == 0 {
		return owner
	}
	return mask[(field-1)>>3]>>((field-1)&7)&1 != 0
}

// noteChanged adds the first of the fields that has changed.
func (r *search) noteChanged(o *Object, mask []byte, owner bool) {
	for _, field := range r.fields {
		if touches(field, mask, owner) {
			r.add(o, field)
			return
		}
	}
}

// add adds a match. A tick may exceed the limit, so that the next search begins with a whole tick.
func (r *search) add(o *Object, field int) {
	if a := r.answer; len(a.Found) < maxFound+maxInTick {
		a.Found = append(a.Found, Found{r.tick, o.ID.String(), o.Class.FieldName(field), o.appendField(nil, field)})
	} else {
		a.More++
	}
}
