package rpcqueue

import "github.com/netloop/netloop/internal/loop"

// Method describes one RPC or Call. It is not changed once it is in a Table.
type Method struct {
	Name string
	// ID is small and unique in its table.
	ID uint32
	// Stages are those that the method allows; the first is its default. Empty
	// means Update only.
	Stages   []loop.Stage
	Reliable bool
	Call     bool
	// LateDrop drops a message whose stage has already run this tick; otherwise
	// it runs in the next tick.
	LateDrop bool
	// Decode and Append convert between bytes and a *M. The queue calls neither.
	Decode func([]byte) (any, error)
	Append func(dst []byte, m any) ([]byte, error)
}

// Table is a fixed set of methods.
type Table struct{}

// NewTable checks the methods.
func NewTable(methods ...*Method) (*Table, error) { panic("rpcqueue: not yet") }

// ByID finds a method.
func (t *Table) ByID(id uint32) (*Method, bool) { panic("rpcqueue: not yet") }

// ByName finds a method.
func (t *Table) ByName(name string) (*Method, bool) { panic("rpcqueue: not yet") }

// Methods returns the methods in the order of their ids.
func (t *Table) Methods() []*Method { panic("rpcqueue: not yet") }

// WireStage is the stage as it travels: 0 for unset, then 10, 20 ... 70.
func WireStage(s loop.Stage) uint32 { return uint32(s) * 10 }

// StageFromWire is the inverse of WireStage.
func StageFromWire(w uint32) (loop.Stage, bool) {
	if w%10 != 0 || w > loop.NumStages*10 {
		return 0, false
	}
	return loop.Stage(w / 10), true
}
