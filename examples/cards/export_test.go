package cards

// Owner returns the incarnation that owns a table in the database.
func (g *Game) Owner(table string) (incarnation uint64, err error) {
	err = g.store.db.QueryRow("SELECT incarnation FROM owners WHERE name = ?", table).Scan(&incarnation)
	return incarnation, err
}

// BreakStore lets the database refuse to write, or no more.
func (g *Game) BreakStore(broken bool) error {
	pragma := "PRAGMA query_only = OFF"
	if broken {
		pragma = "PRAGMA query_only = ON"
	}
	_, err := g.store.db.Exec(pragma)
	return err
}
