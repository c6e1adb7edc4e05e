// Package netlooptest tests a game: a server and any number of clients in
// memory, on one goroutine, in virtual time, over links with seeded delay, loss,
// duplication and reordering.
//
//	w := netlooptest.New(t, game)
//	bad := netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.05}
//	c := w.Join("", JoinParams{Name: "ann"}, bad)
//	w.Until(300, func() bool { return c.State().Phase == client.Playing })
//	w.Step(60) // a second
//	w.Tick(func(t *netloop.Tick) { /* look at the server's state, or change it */ })
//
// A client may have a frame rate and a clock of its own: [FPS], [ClientClock].
//
// [Audit] fails the test when a client is sent a field that it may not read.
//
// The same seed gives the same run, to the bit; a game that gives work to netloop.Go needs
// World.Settle for that. A failing test prints its seed. A panic in the game's systems, handlers or
// hooks, on the server or on a client without a Log of its own, fails the test.
package netlooptest
