package cards

import "time"

// Owner returns the incarnation that owns a table in the database.
func (g *Game) Owner(table string) (incarnation uint64, err error) {
	err = g.store.db.QueryRow("SELECT incarnation FROM owners WHERE name = ?", table).Scan(&incarnation)
	return incarnation, err
}

// AgeStore makes all rows of the database older.
func (g *Game) AgeStore(by time.Duration) error {
	_, err := g.store.db.Exec("UPDATE tables SET saved = saved - ?1; UPDATE owners SET used = used - ?1", int64(by/time.Second))
	return err
}

// Stored returns the number of tables in the database.
func (g *Game) Stored() (tables int, err error) {
	err = g.store.db.QueryRow("SELECT count(*) FROM tables").Scan(&tables)
	return tables, err
}

// Supersede makes a newer room the owner of a table.
func (g *Game) Supersede(table string) error {
	_, err := g.store.db.Exec("UPDATE owners SET incarnation = incarnation + 1 WHERE name = ?", table)
	return err
}

// BreakStore makes the database refuse writes, or accept them again.
func (g *Game) BreakStore(broken bool) error {
	pragma := "PRAGMA query_only = OFF"
	if broken {
		pragma = "PRAGMA query_only = ON"
	}
	_, err := g.store.db.Exec(pragma)
	return err
}
