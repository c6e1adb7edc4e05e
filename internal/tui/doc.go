// Package tui draws the terminal views of the inspector and of a load test.
//
// The flow:
//
//	text.go    numbers for people
//	line.go    lines of spans with styles; each text is escaped before the terminal gets it
//	chart.go   bars, charts of block characters, tiles with figures, and the frame of a screen
//
// terminal.go tells a terminal from another stream. The package has no state, reads no clock, and
// writes to no terminal: charm.land/bubbletea/v2 reads the keys and writes the changed lines in
// both views.
package tui
