// Package overload decides by how much a server reduces its work while it is overloaded.
//
// The flow:
//
//	after each tick    Observe(Sample)    the cost of the tick, how late it began
//	once a window      Median(lags)       flush lag over the clients, only when asked for
//	before a tick      Level()            enters the tick as its input
//	for the inspector  Facts()            the reasons of the level
//
// A Monitor is a deterministic state machine: it reads no clock, and the same samples give the same
// levels. It evaluates windows of ticks, and not single ticks, because a garbage collection or a
// slow page is not an overload. It raises the level by one after one hot window, and lowers it by
// one after many calm windows, because clients notice each change. No level lasts longer than
// Recovery without a hot window.
package overload
