// Package term shows the inspector's overview, ticks and clients in a terminal.
//
// The flow:
//
//	feed.go    reads the server's stream, and connects again after each end
//	             │ answers of the admin listener           ▲ another room, a kick
//	             ▼                                         │
//	model.go   the shown data, and the effects of keys: no network, no clock
//	           overview.go, ticks.go, clients.go           its views, as lines
//	run.go     the program: the views on a terminal, else a line each five seconds
//
// Package tui draws the lines, and escapes each text before the terminal gets it.
//
// The words and the reasons for slow ticks are the same as in the browser's page (../page/src).
// Each cause of a slow tick has a letter besides its color.
package term
