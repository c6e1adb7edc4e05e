package cards

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/netloop/netloop/persist"
)

// A room that a newer one of its name has replaced cannot save any more, neither its match nor the
// result of it, in the same process and after a restart.
func TestAnOlderRoomDoesNotSaveOverANewerOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cards.db")
	s, err := openStore(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.db.Close() })
	ctx := t.Context()
	const oak, older, newer = "table/oak", 7, 8
	if m, err := s.Load(ctx, oak, older); m != nil || err != nil {
		t.Fatalf("the first load: %v, %v", m, err)
	}
	if err := s.Save(ctx, oak, older, []byte(`{"Goal":1}`)); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Load(ctx, oak, newer); string(m) != `{"Goal":1}` || err != nil {
		t.Fatalf("the newer room reads %s: %v", m, err)
	}
	result := func(player string) []byte { return fmt.Appendf(nil, `{"Players":[%q],"Phase":%d}`, player, Over) }
	refused := func(when string) {
		t.Helper()
		_, loads := s.Load(ctx, oak, older)
		for what, err := range map[string]error{
			"load": loads, "save": s.Save(ctx, oak, older, []byte("{}")), "end": s.Save(ctx, oak, older, result("ann")), "delete": s.Delete(ctx, oak, older),
		} {
			if !errors.Is(err, persist.ErrSuperseded) {
				t.Errorf("%s: %s of the older room: %v", when, what, err)
			}
		}
	}
	refused("once the newer room has loaded")
	if err := s.Save(ctx, oak, newer, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(ctx, oak, newer, result("bob")); err != nil {
		t.Fatal(err)
	}
	refused("once the match has ended")
	if w, err := s.record(ctx, "ann"); err != nil || w.Played != 0 {
		t.Errorf("the result of the older room counts: %+v, %v", w, err)
	}
	if w, err := s.record(ctx, "bob"); err != nil || w.Played != 1 {
		t.Errorf("the result of the newer room: %+v, %v", w, err)
	}
	if err := s.Save(ctx, "table/elm", 1, []byte("{}")); err != nil {
		t.Errorf("another table: %v", err)
	}
	if err := s.db.Close(); err != nil {
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
	t.Cleanup(func() { _ = s.db.Close() })
	for _, name := range []string{"old", "new"} {
		if err := s.Save(t.Context(), name, 1, []byte("{}")); err != nil {
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
