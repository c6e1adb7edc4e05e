package cards

// BreakStore lets the database refuse to write, or no more.
func (g *Game) BreakStore(broken bool) error {
	pragma := "PRAGMA query_only = OFF"
	if broken {
		pragma = "PRAGMA query_only = ON"
	}
	_, err := g.store.db.Exec(pragma)
	return err
}
