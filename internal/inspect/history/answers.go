package history

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The bounds of an answer. A larger one is of no use to a person, and the page asks for the next
// part.
const (
	// maxRows bounds the objects of a state, and the rows of a difference and of the messages.
	maxRows = 2000
	// maxAnswer bounds the bytes of values in an answer: a value may have 15 kB.
	maxAnswer = 4 << 20
)

// budget is the space that is left in an answer.
type budget struct{ rows, bytes int }

// take reports whether a row of so many bytes still fits.
func (b *budget) take(size int) bool {
	if b.rows <= 0 || b.bytes < size {
		b.rows = 0 // so that no smaller row follows
		return false
	}
	b.rows--
	b.bytes -= size
	return true
}

// Head is the answer about the recording as a whole.
type Head struct {
	Name     string            `json:"name"`     // of the file, for people
	Bytes    int64             `json:"bytes"`    // size of the file, or of the records
	Schema   string            `json:"schema"`   // name of the game
	Room     string            `json:"room"`     // name of the room; empty: the default one
	Kind     string            `json:"kind"`     // of the room
	Seed     string            `json:"seed"`     // 64 bits, as text; empty for a running room
	Settings map[string]string `json:"settings"` // of the server, as recorded
	// TickRate and FixedRate are fractions, in Hz.
	TickRate  [2]uint64       `json:"tick_rate"`
	FixedRate [2]uint64       `json:"fixed_rate"`
	Classes   []inspect.Class `json:"classes"` // of objects
	Methods   []Method        `json:"methods"` // declared messages
	// Ticks is the number of ticks that have been replayed so far. First and Last are the first and
	// the last of them.
	Ticks int    `json:"ticks"`
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Progress is the part of the file that has been replayed, from 0 to 1.
	Progress float64 `json:"progress"`
	Outcome  Outcome `json:"outcome"` // of the replay so far
}

// Method is a message that clients send.
type Method struct {
	Name       string `json:"name"`        // as declared
	Call       bool   `json:"call"`        // it has an answer
	ServerOnly bool   `json:"server_only"` // clients may not send it
}

// restricted returns the same recording for a caller without the role write.
func (r *Recording) restricted() *Recording {
	c := *r
	c.withheld = true
	return &c
}

// rules returns the read rules whose fields are withheld.
func (r *Recording) rules(c *state.Class) state.Rules {
	if r.withheld {
		return c.AllRules()
	}
	return 0
}

func (r *Recording) row(o *Object) inspect.Object {
	return inspect.Object{ID: o.ID.String(), Class: o.Class.Name(), Owner: o.Owner(), Values: o.Class.AppendJSON(nil, &o.Values, r.rules(o.Class))}
}

// Head returns the answer about the recording as a whole.
func (r *Recording) Head() Head {
	h := Head{
		Name: r.cfg.Name, Bytes: r.cfg.Size, Schema: r.schema.Name, Room: r.spec.Name, Kind: r.spec.Kind,
		Settings: r.head.Notes, TickRate: [2]uint64{r.spec.Rate.Num, r.spec.Rate.Den}, FixedRate: [2]uint64{r.spec.Fixed.Num, r.spec.Fixed.Den},
		Classes: inspect.Classes(r.store.classes), Methods: []Method{}, Outcome: r.Outcome(), Ticks: r.store.ticks.len(),
	}
	if !r.head.Kept {
		h.Seed = fmt.Sprint(r.head.Seed)
	}
	for id := uint32(1); ; id++ {
		m, ok := r.schema.Method(id)
		if !ok {
			break
		}
		h.Methods = append(h.Methods, Method{m.Queue.Name, m.Queue.Call, m.ServerOnly})
	}
	if h.Ticks > 0 {
		h.First, h.Last = r.store.ticks.at(0).tick, r.store.ticks.at(h.Ticks-1).tick
	}
	h.Progress = float64(r.progress.read.Load()) / float64(max(r.cfg.Size, 1))
	return h
}

// refusef returns an error that sets the HTTP status of the answer.
func refusef(status int, format string, a ...any) error {
	return admin.Refuse(status, format, a...)
}

// asOf returns the position of a tick in the index. If the room slept at that tick, it returns the
// position of the last tick before.
func (r *Recording) asOf(tick uint64) (position int, err error) {
	n := r.store.ticks.len()
	if n == 0 {
		return 0, refusef(http.StatusNotFound, "no tick is known yet: %s", r.Outcome().Text)
	}
	first, last := r.store.ticks.at(0).tick, r.store.ticks.at(n-1).tick
	switch {
	case tick < first:
		return 0, refusef(http.StatusNotFound, "tick %d is before the recording, whose first tick is %d", tick, first)
	case tick > last:
		return 0, refusef(http.StatusNotFound, "tick %d is not known: the last one is %d, and %s", tick, last, r.Outcome().Text)
	}
	if position = r.store.from(tick); r.store.ticks.at(position).tick != tick {
		position--
	}
	return position, nil
}

// Around are a tick, and the ticks before and after it; 0 is none.
type Around struct {
	Tick     uint64 `json:"tick"`     // asked tick, or the last one before if the room slept
	Previous uint64 `json:"previous"` // the tick before it; 0: none
	Next     uint64 `json:"next"`     // the tick after it; 0: none
}

func (r *Recording) around(position int) (a Around) {
	a.Tick = r.store.ticks.at(position).tick
	if position > 0 {
		a.Previous = r.store.ticks.at(position - 1).tick
	}
	if position+1 < r.store.ticks.len() {
		a.Next = r.store.ticks.at(position + 1).tick
	}
	return a
}

// StateAnswer is the answer about the state of a tick. More is the number of objects that did not
// fit: the next part begins after the last id.
type StateAnswer struct {
	Around
	Objects []inspect.Object `json:"objects"` // by slot
	More    int              `json:"more"`
}

// State returns the objects as of a tick, from an id on, of one class or of all.
func (r *Recording) State(tick uint64, class string, after state.ID) (StateAnswer, error) {
	position, err := r.asOf(tick)
	if err != nil {
		return StateAnswer{}, err
	}
	if class != "" && !slices.ContainsFunc(r.store.classes, func(c *state.Class) bool { return c.Name() == class }) {
		return StateAnswer{}, refusef(http.StatusNotFound, "%v", unknownClass(class, r.store.classes))
	}
	st, err := r.store.state(position)
	if err != nil {
		return StateAnswer{}, err
	}
	a, left := StateAnswer{Around: r.around(position), Objects: []inspect.Object{}}, budget{maxRows, maxAnswer}
	for _, o := range st.slots {
		if o == nil || o.ID <= after || class != "" && o.Class.Name() != class {
			continue
		}
		if left.rows == 0 {
			a.More++
			continue
		}
		if row := r.row(o); left.take(len(row.Values)) {
			a.Objects = append(a.Objects, row)
		} else {
			a.More++
		}
	}
	return a, nil
}

// DiffAnswer is the difference of the state of a tick from that of the tick With. More is the
// number of objects that did not fit.
type DiffAnswer struct {
	Around
	With    uint64           `json:"with"`    // the other tick
	Added   []inspect.Object `json:"added"`   // objects that the other tick lacks
	Removed []inspect.Object `json:"removed"` // objects that the asked tick lacks
	Changed []ChangedRow     `json:"changed"` // objects with other values
	More    int              `json:"more"`
}

// ChangedRow is an object with other values.
type ChangedRow struct {
	ID     string         `json:"id"`     // slot and generation
	Class  string         `json:"class"`  // of the object
	Owner  uint64         `json:"owner"`  // client that owns it; 0: none
	Fields []ChangedField `json:"fields"` // those with other values
}

// ChangedField is a value of an object in the two states.
type ChangedField struct {
	Field string          `json:"field"` // name of the field
	Was   json.RawMessage `json:"was"`   // its value in the other tick
	Now   json.RawMessage `json:"now"`   // its value in the asked tick
}

// Diff returns the difference of the state of a tick from another one; 0 is the tick before it.
func (r *Recording) Diff(tick, with uint64) (DiffAnswer, error) {
	position, err := r.asOf(tick)
	if err != nil {
		return DiffAnswer{}, err
	}
	from := &State{classes: r.store.classes} // before the first tick
	if with == 0 && position > 0 {
		with = r.store.ticks.at(position - 1).tick
	}
	if with != 0 {
		other, err := r.asOf(with)
		if err != nil {
			return DiffAnswer{}, err
		}
		if from, err = r.store.state(other); err != nil {
			return DiffAnswer{}, err
		}
	}
	now, err := r.store.state(position)
	if err != nil {
		return DiffAnswer{}, err
	}
	a := DiffAnswer{Around: r.around(position), With: from.Tick, Added: []inspect.Object{}, Removed: []inspect.Object{}, Changed: []ChangedRow{}}
	a.fill(r, now.diff(from))
	return a, nil
}

func (a *DiffAnswer) fill(r *Recording, d Diff) {
	left := budget{maxRows, maxAnswer}
	rows := func(list *[]inspect.Object, objects []*Object) {
		for _, o := range objects {
			if row := r.row(o); left.take(len(row.Values)) {
				*list = append(*list, row)
			} else {
				a.More++
			}
		}
	}
	for i := range d.Changed {
		row, size := r.changedRow(&d.Changed[i])
		switch {
		case len(row.Fields) == 0: // They are withheld.
		case left.take(size):
			a.Changed = append(a.Changed, row)
		default:
			a.More++
		}
	}
	rows(&a.Added, d.Added)
	rows(&a.Removed, d.Removed)
}

// changedRow returns the answer's row, and the bytes of its values.
func (r *Recording) changedRow(c *Changed) (row ChangedRow, size int) {
	rules := r.rules(c.Now.Class)
	row = ChangedRow{ID: c.Now.ID.String(), Class: c.Now.Class.Name(), Owner: c.Now.Owner()}
	for _, field := range c.Fields {
		if c.Now.Class.Withheld(field, rules) {
			continue
		}
		f := ChangedField{c.Now.Class.FieldName(field), c.Was.appendField(nil, field), c.Now.appendField(nil, field)}
		size += len(f.Was) + len(f.Now)
		row.Fields = append(row.Fields, f)
	}
	return row, size
}
