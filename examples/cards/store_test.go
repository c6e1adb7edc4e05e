package cards

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A room that a newer one of its name has replaced cannot save any more, neither its match nor the
// result of it, in the same process and after a restart.
func TestAnOlderRoomDoesNotSaveOverANewerOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cards.db")
	s, err := openStore(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	older, newer := tableKey{"table/oak", 7}, tableKey{"table/oak", 8}
	if m, err := s.load(t.Context(), older); m != nil || err != nil {
		t.Fatalf("the first load: %v, %v", m, err)
	}
	if err := s.save(t.Context(), older, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.load(t.Context(), newer); err == nil || errors.Is(err, errSuperseded) {
		t.Fatalf("the newer room reads an invalid match: %v", err) // It owns the table.
	}
	refused := func(when string) {
		t.Helper()
		_, loads := s.load(t.Context(), older)
		for what, err := range map[string]error{
			"load": loads, "save": s.save(t.Context(), older, []byte("late")), "end": s.ended(t.Context(), older, &Match{Players: []string{"ann"}}),
		} {
			if !errors.Is(err, errSuperseded) {
				t.Errorf("%s: %s of the older room: %v", when, what, err)
			}
		}
	}
	refused("once the newer room has loaded")
	if err := s.save(t.Context(), newer, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := s.ended(t.Context(), newer, &Match{Players: []string{"bob"}}); err != nil {
		t.Fatal(err)
	}
	refused("once the match has ended")
	if w, err := s.record(t.Context(), "ann"); err != nil || w.Played != 0 {
		t.Errorf("the result of the older room counts: %+v, %v", w, err)
	}
	if err := s.save(t.Context(), tableKey{"table/elm", 1}, []byte("elm")); err != nil {
		t.Errorf("another table: %v", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if s, err = openStore(file); err != nil {
		t.Fatal(err)
	}
	refused("after a restart")
}

// A match that is not continued is deleted after a time, and the owner of its table with it; a
// match in use is not.
func TestAbandonedMatchesAreDeleted(t *testing.T) {
	s, err := openStore("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() })
	for _, name := range []string{"old", "new"} {
		if err := s.save(t.Context(), tableKey{name, 1}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec(`UPDATE tables SET saved = saved - 7200 WHERE name = 'old'; UPDATE owners SET used = used - 7200`); err != nil {
		t.Fatal(err)
	}
	if err := s.forget(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"tables", "owners"} {
		var names string
		if err := s.db.QueryRow("SELECT group_concat(name) FROM " + of).Scan(&names); err != nil || names != "new" {
			t.Errorf("the %s are %q: %v", of, names, err)
		}
	}
}

// After a panic before a save begins no save is under way, so the next one can begin.
func TestAPanicBeforeASaveDoesNotBlockSaves(t *testing.T) {
	tb := &table{g: New(nil), unsaved: true} // Without a match there is no state to store.
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		tb.save(nil)
	}()
	if tb.saving || !tb.unsaved {
		t.Errorf("a save is under way: %v; the table is unsaved: %v", tb.saving, tb.unsaved)
	}
}

// A table that cannot be stored at the end of its room is retried for 8 s, and not at all once a
// newer room has loaded it.
func TestTheFinalSaveOfATableIsRetried(t *testing.T) {
	for name, tt := range map[string]struct {
		mended      time.Duration // when the database works again; 0 is never
		newer       bool          // the table has a newer room, and the database works
		least, most time.Duration
		stored      bool
	}{
		"a database that fails for good": {least: 7 * time.Second, most: 8 * time.Second},
		"one that works again":           {mended: 2 * time.Second, least: 2 * time.Second, most: 4 * time.Second, stored: true},
		"a newer room":                   {newer: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(nil)
			s, err := openStore("")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.close() })
			g.store = s
			if tt.newer {
				if _, err := s.load(t.Context(), tableKey{"table/oak", 2}); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.BreakStore(!tt.newer); err != nil {
				t.Fatal(err)
			}
			s.use()
			synctest.Test(t, func(t *testing.T) {
				if tt.mended > 0 {
					time.AfterFunc(tt.mended, func() { _ = g.BreakStore(false) })
				}
				tb := &table{g: g, key: tableKey{"table/oak", 1}, match: &Match{}, unsaved: true}
				began := time.Now()
				err := tb.close(t.Context(), nil)
				if took := time.Since(began); took < tt.least || took > tt.most || (err == nil) != tt.stored || errors.Is(err, errSuperseded) != tt.newer {
					t.Errorf("it has ended after %v: %v", took, err)
				}
			})
			var b []byte
			if err := s.db.QueryRow("SELECT match FROM tables").Scan(&b); (err == nil) != tt.stored {
				t.Errorf("the database has %q: %v", b, err)
			}
		})
	}
}
