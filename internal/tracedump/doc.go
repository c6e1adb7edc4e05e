// Package tracedump writes the execution trace of the seconds before a slow tick, as a file for `go
// tool trace`.
//
// The flow:
//
//	Open(config)             the process starts to record its last seconds
//	goroutine of the ticks   Slow(tick): accepts at most one per interval and never waits
//	goroutine of the dumper  writes the file, deletes the oldest ones
//	Close()                  waits until the current file is written
//
// Go has one flight recorder per process. All dumpers share it: it runs while any is open, and each
// file holds the trace of the whole process.
package tracedump
