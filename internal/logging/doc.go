// Package logging turns zap into a *slog.Logger that never makes its caller wait.
//
// The flow:
//
//	any goroutine                         writer goroutine
//	slog → zapslog → zap core → encoder   swap the pending bytes, write them
//	  → sink: append under a lock    ──▶  to the output (may block), say what was dropped
//
// A room's goroutine logs from inside a tick, so a full pipe, a slow disk or a stopped
// terminal must not reach it. Between the two stands one bounded buffer: a line that does
// not fit is dropped and counted (netloop_logs_dropped_total), and as soon as the output
// takes bytes again a line says how many are missing.
//
// Formats: json (one object per line) and text (for people). In both one entry is exactly
// one line: whatever a client managed to get into a message, no line can be forged.
package logging
