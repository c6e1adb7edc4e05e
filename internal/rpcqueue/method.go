package rpcqueue

import (
	"errors"
	"fmt"
	"slices"

	"github.com/netloop/netloop/internal/loop"
)

// MaxMethodID limits the ids of a table, which finds methods by index. Ids are assigned from small
// to large, and no game has 65 536 methods.
const MaxMethodID = 1 << 16

// Method describes one RPC or Call. It must not change once it is in a Table, and several tables
// may share it.
type Method struct {
	Name string
	// ID is unique in its table and less than MaxMethodID. Keep it small.
	ID uint32
	// Stages are the allowed stages; the first is its default. Empty means Update only.
	Stages   []loop.Stage
	Reliable bool
	Call     bool
	// LateDrop drops a message if its stage has already run this tick; otherwise the message runs
	// in the next tick.
	LateDrop bool
	// Limit limits the messages of each sender for the method; PerTick limits them in one tick; 0:
	// no limit. Further messages are dropped.
	Limit   Bucket
	PerTick int
}

// Default returns the stage of a message without a requested stage.
func (m *Method) Default() loop.Stage {
	if len(m.Stages) == 0 {
		return loop.Update
	}
	return m.Stages[0]
}

// Allows reports whether a message may request the stage.
func (m *Method) Allows(s loop.Stage) bool {
	if len(m.Stages) == 0 {
		return s == loop.Update
	}
	return slices.Contains(m.Stages, s)
}

// check returns an error that names the method and the invalid field.
func (m *Method) check() error {
	if m.Name == "" {
		return fmt.Errorf("the method with id %d needs a name", m.ID)
	}
	if m.ID >= MaxMethodID {
		return fmt.Errorf("method %q: id %d: the largest is %d", m.Name, m.ID, MaxMethodID-1)
	}
	if err := m.Limit.Check(); err != nil {
		return fmt.Errorf("method %q: limit: %w", m.Name, err)
	}
	if m.PerTick < 0 || m.PerTick > MaxBurst {
		return fmt.Errorf("method %q: %d a tick: use 0 for any number, or 1 to %d", m.Name, m.PerTick, MaxBurst)
	}
	for i, s := range m.Stages {
		if !s.Valid() {
			return fmt.Errorf("method %q: stage %d: there is no such stage", m.Name, s)
		}
		if slices.Contains(m.Stages[:i], s) {
			return fmt.Errorf("method %q: stage %v is named twice", m.Name, s)
		}
	}
	return nil
}

// Table is a fixed set of methods. It may be shared by any number of queues and
// goroutines.
type Table struct {
	byID   []*Method // nil where an id is not used
	byName map[string]*Method
	sorted []*Method
}

// NewTable checks the methods: names and ids must be unique, stages valid. All
// errors are reported.
func NewTable(methods ...*Method) (*Table, error) {
	t := &Table{byName: make(map[string]*Method, len(methods))}
	var errs []error
	for _, m := range methods {
		errs = append(errs, t.add(m))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t.sorted = slices.DeleteFunc(slices.Clone(t.byID), func(m *Method) bool { return m == nil })
	return t, nil
}

func (t *Table) add(m *Method) error {
	if m == nil {
		return errors.New("a method is nil")
	}
	if err := m.check(); err != nil {
		return err
	}
	if o, ok := t.ByID(m.ID); ok {
		return fmt.Errorf("methods %q and %q share the id %d", o.Name, m.Name, m.ID)
	}
	if t.byName[m.Name] != nil {
		return fmt.Errorf("two methods are named %q", m.Name)
	}
	for uint32(len(t.byID)) <= m.ID {
		t.byID = append(t.byID, nil)
	}
	t.byID[m.ID] = m
	t.byName[m.Name] = m
	return nil
}

// ByID finds a method.
func (t *Table) ByID(id uint32) (*Method, bool) {
	m := t.at(id)
	return m, m != nil
}

// at returns the method with an id, or nil.
func (t *Table) at(id uint32) *Method {
	if uint64(id) >= uint64(len(t.byID)) {
		return nil
	}
	return t.byID[id]
}

// ByName finds a method.
func (t *Table) ByName(name string) (*Method, bool) {
	m, ok := t.byName[name]
	return m, ok
}

// Methods returns the methods in the order of their ids. The caller must not
// change the result.
func (t *Table) Methods() []*Method { return t.sorted }

// holds reports whether m itself, not only its id, is in the table.
func (t *Table) holds(m *Method) bool { return m != nil && t.at(m.ID) == m }

// wireStep is the distance of two stages on the wire. It leaves room for stages between the current
// ones.
const wireStep = 10

// WireStage returns the wire value of a stage: 0 for unset, then 10, 20 ... 70.
func WireStage(s loop.Stage) uint32 { return uint32(s) * wireStep }
