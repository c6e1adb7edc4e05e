// Package overload decides by how much a server reduces its work while it is overloaded.
//
// The flow:
//
//	after each tick    Observe(Sample)    the cost of the tick, how late it began
//	once a window      Median(lags)       flush lag over the clients, only when asked for
//	before a tick      Level()            enters the tick as its input
//
// A Monitor is a deterministic state machine: it reads no clock, and the same samples give the same
// levels. It judges windows of ticks, not single ticks, because a garbage collection or a slow page
// is no overload; it climbs a step after one bad window and descends a step after many good ones,
// because clients notice each change. No level outlasts Recovery without a bad window.
package overload
