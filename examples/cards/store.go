package cards

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // The driver: SQLite in Go, so that the server is one static program.
)

// store is the database. Any goroutine may use it except a room's, which uses netloop.Go.
type store struct {
	db    *sql.DB
	users atomic.Int32 // rooms that have it open: they end in any order
}

// migrations are the versions of the database, in order. Released ones must not change.
var migrations = []string{
	`CREATE TABLE tables (name TEXT PRIMARY KEY, match BLOB NOT NULL) STRICT`,
	`CREATE TABLE players (name TEXT PRIMARY KEY, played INTEGER NOT NULL, won INTEGER NOT NULL) STRICT`,
	`CREATE TABLE owners (name TEXT PRIMARY KEY, incarnation INTEGER NOT NULL) STRICT`,
	// The time at which each row was last written, in seconds since 1970.
	`ALTER TABLE tables ADD COLUMN saved INTEGER NOT NULL DEFAULT 0; UPDATE tables SET saved = unixepoch();
		ALTER TABLE owners ADD COLUMN used INTEGER NOT NULL DEFAULT 0; UPDATE owners SET used = unixepoch()`,
}

// openStore opens a file, or a database in memory without one, and brings it up to date.
func openStore(file string) (*store, error) {
	if file == "" {
		file = ":memory:"
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	// SQLite has one writer, and each connection to :memory: would have a database of its own.
	db.SetMaxOpenConns(1)
	s := &store{db: db}
	s.users.Add(1)
	if err := s.migrate(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// migrate runs the migrations that the file has not had, each together with its number or not at
// all.
func (s *store) migrate() error {
	// A saved table survives the end of the process; a power cut may lose the last second, which
	// costs a table a move.
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

// close is called once for the room that has opened the store, and once for each call of use.
func (s *store) close() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return s.db.Close()
}

// use keeps the store open for another room. It does nothing in the replay of a table, which has no
// lobby and so no store: saves do not run again there.
func (s *store) use() {
	if s != nil {
		s.users.Add(1)
	}
}

// tableKey is the name of a table, and the incarnation of the room that reads and writes it: see
// netloop.Room.Incarnation.
type tableKey struct {
	name        string
	incarnation uint64
}

// errSuperseded is the error of a room after a newer room has loaded its table. Later writes of the
// older room, after the watchdog gave it up or in another process, must not replace it.
var errSuperseded = errors.New("a newer room has loaded this table")

// own runs fn in a transaction in which the table belongs to the incarnation of the key, or fails
// with errSuperseded if it belongs to a newer one. A row of owners outlives its table: it refuses
// an older room also after the match has ended.
func (s *store) own(ctx context.Context, table tableKey, fn func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // No effect after Commit.
	done, err := tx.ExecContext(ctx, `INSERT INTO owners VALUES (?, ?, unixepoch()) ON CONFLICT DO UPDATE SET incarnation = excluded.incarnation, used = excluded.used
		WHERE incarnation <= excluded.incarnation`, table.name, int64(table.incarnation))
	if err != nil {
		return err
	}
	switch changed, err := done.RowsAffected(); {
	case err != nil:
		return err
	case changed == 0:
		return fmt.Errorf("table %q: %w", table.name, errSuperseded)
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// save stores a table: a Match as JSON.
func (s *store) save(ctx context.Context, table tableKey, match []byte) error {
	return s.own(ctx, table, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO tables VALUES (?, ?, unixepoch()) ON CONFLICT DO UPDATE SET match = excluded.match, saved = excluded.saved`, table.name, match)
		return err
	})
}

// load returns the saved match of a table, or nil if there is none. From then on saves of rooms
// with smaller incarnations are refused.
func (s *store) load(ctx context.Context, table tableKey) (*Match, error) {
	var b []byte
	err := s.own(ctx, table, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT match FROM tables WHERE name = ?`, table.name).Scan(&b)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil || b == nil {
		return nil, err
	}
	m := new(Match)
	if err = json.Unmarshal(b, m); err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", table.name, err)
	}
	return m, nil
}

// ended stores the result of a match, and deletes the match.
func (s *store) ended(ctx context.Context, table tableKey, m *Match) error {
	return s.own(ctx, table, func(tx *sql.Tx) error {
		for i, p := range m.Players {
			won := 0
			if i == m.Winner {
				won = 1
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO players VALUES (?, 1, ?) ON CONFLICT DO UPDATE SET played = played + 1, won = won + excluded.won`, p, won); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM tables WHERE name = ?`, table.name)
		return err
	})
}

// record returns a player's record.
func (s *store) record(ctx context.Context, player string) (w Won, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT played, won FROM players WHERE name = ?`, player).Scan(&w.Played, &w.Won)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return w, err
}
