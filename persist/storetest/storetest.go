// Package storetest tests implementations of [persist.Store]: each store of this repository passes
// it, and a store of a game calls it from its own tests.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/netloop/netloop/persist"
)

// Run tests stores that open returns; each call returns the same records, as another process would
// find them.
func Run(t *testing.T, open func(t *testing.T) persist.Store) {
	t.Run("records", func(t *testing.T) { records(t, open(t)) })
	t.Run("owners", func(t *testing.T) { owners(t, open(t), open(t)) })
	t.Run("races", func(t *testing.T) { races(t, open(t), open(t)) })
}

// keys of all kinds, as room names are: stores must not mix them up.
var keys = []string{"a", "A", "table/oak", "table", "..", ".", "a b", "ä", "a%2Fb", "a/b", "CON", "x.", "x"}

func records(t *testing.T, s persist.Store) {
	ctx := t.Context()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for i, key := range keys {
		want(t, s, key, 1, nil)
		for _, record := range [][]byte{fmt.Appendf(nil, `{"n":%d}`, i), large, []byte(`{}`), fmt.Appendf(nil, "%d", i)} {
			if err := s.Save(ctx, key, 1, record); err != nil {
				t.Fatalf("Save of %q: %v", key, err)
			}
			want(t, s, key, 1, record)
		}
	}
	for i, key := range keys {
		want(t, s, key, 1, fmt.Appendf(nil, "%d", i))
		for range 2 {
			if err := s.Delete(ctx, key, 1); err != nil {
				t.Fatalf("Delete of %q: %v", key, err)
			}
		}
		want(t, s, key, 1, nil)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Save(done, "a", 1, []byte("late")); err == nil {
		t.Error("Save ignores its context")
	}
}

// owners tests that an older incarnation changes nothing, also over another connection to the store
// and after the record was deleted.
func owners(t *testing.T, s, other persist.Store) {
	ctx := t.Context()
	must(t, s.Save(ctx, "owned", 5, []byte("old")))
	want(t, other, "owned", 7, []byte("old"))
	refused := func(stage string) {
		t.Helper()
		if err := s.Save(ctx, "owned", 6, []byte("stale")); !errors.Is(err, persist.ErrSuperseded) {
			t.Errorf("%s: Save of an older incarnation: %v", stage, err)
		}
		if err := s.Delete(ctx, "owned", 6); !errors.Is(err, persist.ErrSuperseded) {
			t.Errorf("%s: Delete of an older incarnation: %v", stage, err)
		}
		if _, err := s.Load(ctx, "owned", 6); !errors.Is(err, persist.ErrSuperseded) {
			t.Errorf("%s: Load of an older incarnation: %v", stage, err)
		}
	}
	refused("loaded")
	want(t, s, "owned", 7, []byte("old"))
	must(t, s.Save(ctx, "owned", 7, []byte("new")))
	must(t, other.Delete(ctx, "owned", 7))
	refused("deleted")
	want(t, s, "owned", 7, nil)
}

// races tests that the newest of many rooms that load and save at once wins.
func races(t *testing.T, stores ...persist.Store) {
	const rooms = 8
	ctx := t.Context()
	var all sync.WaitGroup
	for i := range uint64(rooms) {
		s := stores[i%uint64(len(stores))]
		all.Go(func() {
			if _, err := s.Load(ctx, "raced", 1+i); err != nil && !errors.Is(err, persist.ErrSuperseded) {
				t.Errorf("Load: %v", err)
			}
			for n := range 10 {
				err := s.Save(ctx, "raced", 1+i, fmt.Appendf(nil, "%d of room %d", n, 1+i))
				if err != nil && !errors.Is(err, persist.ErrSuperseded) {
					t.Errorf("Save: %v", err)
				}
			}
		})
	}
	all.Wait()
	want(t, stores[0], "raced", rooms, fmt.Appendf(nil, "9 of room %d", rooms))
}

func want(t *testing.T, s persist.Store, key string, incarnation uint64, want []byte) {
	t.Helper()
	is, err := s.Load(t.Context(), key, incarnation)
	if err != nil || !bytes.Equal(is, want) || (is == nil) != (want == nil) {
		t.Fatalf("Load of %q: %d bytes %.40q, %v; want %d bytes %.40q", key, len(is), is, err, len(want), want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
