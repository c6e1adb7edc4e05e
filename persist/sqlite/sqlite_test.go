package sqlite

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/persist/sqlstore"
	"github.com/netloop/netloop/persist/storetest"
)

func open(t *testing.T, file string) *Store {
	t.Helper()
	s, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records.db")
	storetest.Run(t, func(t *testing.T) persist.Store { return open(t, file) })
}

func TestPrune(t *testing.T) {
	s := open(t, "")
	for _, key := range []string{"old", "new"} {
		if err := s.Save(t.Context(), key, 1, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DB.Exec(`UPDATE records SET used = used - 7200 WHERE key = 'old'`); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Prune(t.Context(), time.Hour); n != 1 || err != nil {
		t.Errorf("%d records are deleted, want 1: %v", n, err)
	}
	if b, err := s.Load(t.Context(), "new", 1); string(b) != "x" || err != nil {
		t.Errorf("the new record is %q: %v", b, err)
	}
}

func TestMisuse(t *testing.T) {
	s := open(t, "")
	for want, err := range map[string]error{
		"small letters":        second(sqlstore.Open(t.Context(), s.DB, sqlstore.SQLite, "drop table")),
		"unknown dialect":      second(sqlstore.Open(t.Context(), s.DB, 0, "records")),
		"larger than a BIGINT": s.Save(t.Context(), "a", math.MaxInt64+1, nil),
		"unable to open":       second(Open(t.Context(), t.TempDir())),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
