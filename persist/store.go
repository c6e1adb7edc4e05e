package persist

import (
	"context"
	"errors"
	"sync/atomic"
)

// Store keeps records by key. Each key belongs to the largest incarnation that has loaded it. Any
// goroutine may use a store. The calls for one room never overlap. Each call has a context that
// ends after 10 s at the latest, and must return soon after: until then the room stores no change.
type Store interface {
	// Load returns the record of a key, nil without one, and makes the incarnation the owner of the
	// key. It fails with [ErrSuperseded] if a larger one is the owner.
	Load(ctx context.Context, key string, incarnation uint64) ([]byte, error)
	// Save replaces the record of a key, as a whole or not at all. It fails with [ErrSuperseded] if
	// a larger incarnation is the owner.
	Save(ctx context.Context, key string, incarnation uint64, record []byte) error
	// Delete removes the record of a key, under the conditions of Save. The owner remains. Without
	// a record it does nothing.
	Delete(ctx context.Context, key string, incarnation uint64) error
}

// ErrSuperseded is the error of a store for a room after a newer room has loaded the same key. It
// is not tried again: the room closes.
var ErrSuperseded = errors.New("a newer room has loaded the record")

// Keeper is a store that the rooms of a server share.
type Keeper struct {
	store   Store
	failing atomic.Bool // the last call for any room has failed
}

// New returns a Keeper for the store.
func New(s Store) *Keeper { return &Keeper{store: s} }
