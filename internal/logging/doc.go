// Package logging turns zap into a *slog.Logger that never blocks its caller.
//
// The flow:
//
//	any goroutine                         writer goroutine
//	slog → zapslog → zap core → encoder   swap the pending bytes, write them
//	  → sink: append under a lock    ──▶  to the output (may block), report dropped lines
//
// A room's goroutine logs from inside a tick, so a full pipe, a slow disk or a stopped terminal
// must not block it. One bounded buffer separates the two goroutines: a line that does not fit is
// dropped and counted (netloop_logs_dropped_total), and as soon as the output accepts bytes again a
// line reports the number of missing lines.
//
// Formats: json (one object per line) and text (for people). In both, one entry is exactly one
// line: no text of a client can forge a line.
package logging
