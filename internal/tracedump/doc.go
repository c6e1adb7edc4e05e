// Package tracedump writes down what the process did when a tick was slow: the execution trace
// of the seconds before, as a file for `go tool trace`.
//
// The flow:
//
//	Open(config)             the process begins to remember its last seconds
//	goroutine of the ticks   Slow(tick): at most one in a while is taken, nothing waits
//	goroutine of the dumper  writes the file, deletes the oldest ones
//	Close()                  when the file under way is written
//
// Go has one flight recorder per process. All dumpers share it: it runs while any is open,
// and each file holds what the whole process did.
package tracedump
