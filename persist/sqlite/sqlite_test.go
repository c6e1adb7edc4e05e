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
	ctx, s := t.Context(), open(t, "")
	if err := s.Save(ctx, "a", math.MaxInt64, nil); err != nil {
		t.Error(err)
	}
	foreign, closed := filepath.Join(t.TempDir(), "foreign.db"), open(t, "")
	if _, err := open(t, foreign).DB.Exec(`DROP TABLE records; CREATE TABLE t (a); CREATE INDEX records ON t (a)`); err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(sqlstore.Open(ctx, s.DB, sqlstore.SQLite, "drop table")), "small letters"},
		{second(sqlstore.Open(ctx, s.DB, 0, "records")), "unknown dialect"},
		{s.Save(ctx, "a", math.MaxInt64+1, nil), "larger than a BIGINT"},
		{second(s.Load(ctx, "a", math.MaxInt64+1)), "larger than a BIGINT"},
		{second(Open(ctx, t.TempDir())), "sqlite: unable to open"},
		{second(Open(ctx, foreign)), "sqlstore: SQL logic error: there is already an index"},
		{second(closed.Load(ctx, "a", 1)), `sqlstore: "a": sql: database is closed`},
		{closed.Save(ctx, "a", 1, nil), `sqlstore: "a": sql: database is closed`},
		{second(closed.Prune(ctx, 0)), "sqlstore: sql: database is closed"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("the error is %v, want %q", c.err, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
