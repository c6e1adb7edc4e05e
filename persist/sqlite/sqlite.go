// Package sqlite opens a [sqlstore.Store] in a SQLite file, with a driver in Go: the server stays
// one static program. It is for one machine.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "modernc.org/sqlite" // the driver

	"github.com/netloop/netloop/persist/sqlstore"
)

// Store is a file with its table "records".
type Store struct {
	*sqlstore.Store

	// DB is the open database, for other tables of the game.
	DB *sql.DB
}

// Open opens a file, or a temporary database for "". A saved record survives a crash of the
// process; a power cut may lose the last second.
func Open(ctx context.Context, file string) (*Store, error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, fmt.Errorf("sqlite: %w", err)
	}
	// SQLite has one writer, and each connection to "" has a database of its own.
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000`)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: %w", err), db.Close())
	}
	s, err := sqlstore.Open(ctx, db, sqlstore.SQLite, "records")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{s, db}, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.DB.Close() }
