// Package sqlstore is a [persist.Store] in a table of a database, SQLite or PostgreSQL, through any
// driver of package database/sql. Each call is one statement, so that it needs no transaction. The
// tests of this repository run it on SQLite, and on PostgreSQL 15 with lib/pq.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/netloop/netloop/persist"
)

// Dialect is the SQL of a database.
type Dialect uint8

// The dialects.
const (
	SQLite     Dialect = iota + 1 // 3.35 or newer
	PostgreSQL                    // 9.5 or newer
)

// Store is a table. Any goroutine may use it.
type Store struct {
	db                *sql.DB
	load, save, prune string // statements
}

var _ persist.Store = (*Store)(nil)

// simple matches names that need no quotes.
var simple = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open returns the store in a table, which it makes if there is none. The table's name has small
// letters, digits and _. The database belongs to the caller, who closes it after the server's end.
func Open(ctx context.Context, db *sql.DB, d Dialect, table string) (*Store, error) {
	if !simple.MatchString(table) {
		return nil, fmt.Errorf("sqlstore: the table %q: use 1 to 63 small letters, digits and _", table)
	}
	blob := map[Dialect]string{SQLite: "BLOB", PostgreSQL: "BYTEA"}[d]
	if blob == "" {
		return nil, fmt.Errorf("sqlstore: unknown dialect %d", d)
	}
	statement := func(text string) string {
		text = strings.ReplaceAll(text, "TABLE_NAME", table)
		if d == PostgreSQL {
			return text
		}
		return regexp.MustCompile(`\$\d`).ReplaceAllString(text, "?")
	}
	if _, err := db.ExecContext(ctx, statement(`CREATE TABLE IF NOT EXISTS TABLE_NAME
		(key TEXT PRIMARY KEY, incarnation BIGINT NOT NULL, used BIGINT NOT NULL, record `+blob+`)`)); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Store{
		db: db,
		load: statement(`INSERT INTO TABLE_NAME (key, incarnation, used) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO UPDATE SET incarnation = excluded.incarnation, used = excluded.used
			WHERE TABLE_NAME.incarnation <= excluded.incarnation RETURNING record`),
		save: statement(`INSERT INTO TABLE_NAME (key, incarnation, used, record) VALUES ($1, $2, $3, $4)
			ON CONFLICT (key) DO UPDATE SET incarnation = excluded.incarnation, used = excluded.used, record = excluded.record
			WHERE TABLE_NAME.incarnation <= excluded.incarnation`),
		prune: statement(`DELETE FROM TABLE_NAME WHERE used < $1`),
	}, nil
}

// number returns an incarnation as a column stores it.
func number(incarnation uint64) (int64, error) {
	if incarnation > math.MaxInt64 {
		return 0, fmt.Errorf("sqlstore: the incarnation %d is larger than a BIGINT", incarnation)
	}
	return int64(incarnation), nil
}

// Load implements [persist.Store].
func (s *Store) Load(ctx context.Context, key string, incarnation uint64) (record []byte, err error) {
	n, err := number(incarnation)
	if err != nil {
		return nil, err
	}
	err = s.db.QueryRowContext(ctx, s.load, key, n, time.Now().Unix()).Scan(&record)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, persist.ErrSuperseded
	case err != nil:
		return nil, fmt.Errorf("sqlstore: %q: %w", key, err)
	}
	return record, nil
}

// Save implements [persist.Store].
func (s *Store) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	return s.write(ctx, key, incarnation, record)
}

// write stores a value. Delete stores nil without a type: lib/pq stores a nil []byte as an empty
// value, not as NULL.
func (s *Store) write(ctx context.Context, key string, incarnation uint64, record any) error {
	n, err := number(incarnation)
	if err != nil {
		return err
	}
	done, err := s.db.ExecContext(ctx, s.save, key, n, time.Now().Unix(), record)
	if err != nil {
		return fmt.Errorf("sqlstore: %q: %w", key, err)
	}
	switch changed, err := done.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("sqlstore: %q: %w", key, err)
	case changed == 0:
		return persist.ErrSuperseded
	}
	return nil
}

// Delete implements [persist.Store]. The row remains, with the owner alone, until [Store.Prune].
func (s *Store) Delete(ctx context.Context, key string, incarnation uint64) error {
	return s.write(ctx, key, incarnation, nil)
}

// Prune deletes the records that were neither loaded nor saved for a time, with their owners:
// choose a time that is longer than the life of any room. It returns their number.
func (s *Store) Prune(ctx context.Context, unused time.Duration) (int64, error) {
	done, err := s.db.ExecContext(ctx, s.prune, time.Now().Add(-unused).Unix())
	if err != nil {
		return 0, fmt.Errorf("sqlstore: %w", err)
	}
	return done.RowsAffected()
}
