// Package overload decides how much a server gives up while it cannot keep up.
//
// The flow:
//
//	after each tick    Observe(Sample)    what the tick cost, how late it began
//	once a window      Median(lags)       flush lag over the clients, only when asked for
//	before a tick      Level()            enters the tick as its input
//
// A Ladder is a state machine of what it is told: it reads no clock, and the same samples
// give the same levels. It judges windows of ticks, not single ones, because a garbage
// collection or a slow page is no overload; it climbs a step after one bad window and
// descends a step after many good ones, because clients notice every change. No level outlasts
// Recovery without a bad window.
package overload
