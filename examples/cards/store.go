package cards

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	_ "modernc.org/sqlite" // The driver: SQLite in Go, so that the server is one static program.

	"github.com/netloop/netloop/persist"
)

// store is the database: of the matches of the tables, for package persist, and of the players'
// results. Any goroutine may use it except a room's, which uses netloop.Go.
type store struct{ db *sql.DB }

// migrations are the versions of the database, in order. Released ones must not change.
var migrations = []string{
	`CREATE TABLE tables (name TEXT PRIMARY KEY, match BLOB NOT NULL) STRICT`,
	`CREATE TABLE players (name TEXT PRIMARY KEY, played INTEGER NOT NULL, won INTEGER NOT NULL) STRICT`,
	`CREATE TABLE owners (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL) STRICT`,
	// The time at which each row was last written, in seconds since 1970.
	`ALTER TABLE tables ADD COLUMN saved INTEGER NOT NULL DEFAULT 0; UPDATE tables SET saved = unixepoch();
		ALTER TABLE owners ADD COLUMN used INTEGER NOT NULL DEFAULT 0; UPDATE owners SET used = unixepoch()`,
}

// openStore opens a file, or without a file name a database in memory, and runs the migrations.
func openStore(file string) (*store, error) {
	db, err := sql.Open("sqlite", cmp.Or(file, ":memory:"))
	if err != nil {
		return nil, err
	}
	// SQLite has one writer, and each connection to :memory: would have a database of its own.
	db.SetMaxOpenConns(1)
	s := &store{db: db}
	if err := s.migrate(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// migrate runs the migrations that the file does not have yet. Each migration and its number are
// stored in one transaction.
func (s *store) migrate() error {
	// A saved table survives the end of the process. A power cut may lose the last second, and so a
	// move of a table.
	if _, err := s.db.Exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000`); err != nil {
		return err
	}
	var version int
	if err := s.db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("it has version %d, and this program knows up to %d", version, len(migrations))
	}
	for i, m := range migrations[version:] {
		tx, err := s.db.Begin()
		if err != nil {
			return err
		}
		if _, err = tx.Exec(fmt.Sprintf(`%s; PRAGMA user_version = %d`, m, version+i+1)); err != nil {
			return errors.Join(fmt.Errorf("migration %d: %w", version+i+1, err), tx.Rollback())
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// forget deletes matches that were not continued for a time, and the owners of their tables.
func (s *store) forget(ctx context.Context, after time.Duration) error {
	seconds := int64(after / time.Second)
	_, err := s.db.ExecContext(ctx, `DELETE FROM tables WHERE saved < unixepoch() - ?`, seconds)
	if err == nil {
		_, err = s.db.ExecContext(ctx, `DELETE FROM owners WHERE used < unixepoch() - ? AND name NOT IN (SELECT name FROM tables)`, seconds)
	}
	return err
}

// own runs fn in a transaction in which the table belongs to the incarnation, or fails with
// persist.ErrSuperseded if it belongs to a newer one. A row of owners outlives its table: it
// refuses an older room also after the match has ended.
func (s *store) own(ctx context.Context, table string, incarnation uint64, fn func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // No effect after Commit.
	done, err := tx.ExecContext(ctx, `INSERT INTO owners VALUES (?, ?, unixepoch()) ON CONFLICT DO UPDATE SET incarnation = excluded.incarnation, used = excluded.used
		WHERE incarnation <= excluded.incarnation`, table, int64(incarnation))
	if err != nil {
		return err
	}
	switch changed, err := done.RowsAffected(); {
	case err != nil:
		return err
	case changed == 0:
		return fmt.Errorf("table %q: %w", table, persist.ErrSuperseded)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Load implements persist.Store.
func (s *store) Load(ctx context.Context, table string, incarnation uint64) (match []byte, err error) {
	err = s.own(ctx, table, incarnation, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT match FROM tables WHERE name = ?`, table).Scan(&match)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return match, err
}

// Save implements persist.Store. Of a match that has ended it stores the result, and deletes the
// match.
func (s *store) Save(ctx context.Context, table string, incarnation uint64, match []byte) error {
	return s.own(ctx, table, incarnation, func(tx *sql.Tx) error {
		var m Match
		if err := json.Unmarshal(match, &m); err != nil {
			return err
		}
		if m.Phase == Over {
			return ended(ctx, tx, table, &m)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO tables VALUES (?, ?, unixepoch()) ON CONFLICT DO UPDATE SET match = excluded.match, saved = excluded.saved`, table, match)
		return err
	})
}

// Delete implements persist.Store.
func (s *store) Delete(ctx context.Context, table string, incarnation uint64) error {
	return s.own(ctx, table, incarnation, func(tx *sql.Tx) error { return ended(ctx, tx, table, new(Match)) })
}

// ended stores the result of a match, and deletes the match.
func ended(ctx context.Context, tx *sql.Tx, table string, m *Match) error {
	for i, p := range m.Players {
		won := 0
		if i == m.Winner {
			won = 1
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO players VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET played = played + 1, won = won + excluded.won`, p, won); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM tables WHERE name = ?`, table)
	return err
}

// plain reduces an error to its text, which a recording can store. An error of the database holds
// more.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// record returns a player's record.
func (s *store) record(ctx context.Context, player string) (w Won, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT played, won FROM players WHERE name = ?`, player).Scan(&w.Played, &w.Won)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return w, err
}
