package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"
)

// told is a database that only notes its statements.
type told struct{ statements []string }

func (d *told) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d *told) Driver() driver.Driver                        { return nil }
func (*told) Close() error                                   { return nil }
func (*told) Begin() (driver.Tx, error)                      { return nil, driver.ErrSkip }
func (*told) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrSkip }

func (d *told) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	d.statements = append(d.statements, text)
	return driver.ResultNoRows, nil
}

// Each database gets its own type of a record and its own parameters. storetest runs the statements
// on SQLite.
func TestStatementsAreOfTheDialect(t *testing.T) {
	for d, want := range map[Dialect]struct{ kind, values, none string }{
		SQLite: {"record BLOB)", "VALUES (?, ?, ?", "$"}, PostgreSQL: {"record BYTEA)", "VALUES ($1, $2, $3", "?"},
	} {
		var db told
		s, err := Open(t.Context(), sql.OpenDB(&db), d, "rooms_1")
		if err != nil {
			t.Fatal(err)
		}
		all := append(db.statements, s.load, s.save, s.prune)
		for _, text := range all {
			if !strings.Contains(text, " rooms_1") || strings.Contains(text, "TABLE_NAME") || strings.Contains(text, want.none) {
				t.Errorf("dialect %d: %s", d, text)
			}
		}
		if len(all) != 4 || !strings.Contains(all[0], want.kind) || !strings.Contains(s.load, want.values) || !strings.Contains(s.save, want.values) {
			t.Errorf("dialect %d: %q", d, all)
		}
	}
}
