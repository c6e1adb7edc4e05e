// Package metrics is what a server tells about itself: Prometheus series for operators,
// and the exact account of ticks (package ticks) for load tests.
//
// What a server measures is one table (table.go): a row names a family, says what it is, and where
// its values come from (source.go). The flow:
//
//	tick goroutine     ObserveTick(record): histograms, HDR counts, the account
//	                   Report(room): the room's plain numbers, four times a second
//	any goroutine      Add to a family that is counted into; ObserveFlushLag
//	scrape             the Server's atomics and the account, then everything is read
//
// One *Metrics is one prometheus.Collector. It sits in a registry of its own, so that two
// servers in a process never collide, and in the caller's registry too if one is given.
//
// Rules that every series here keeps: prefix netloop_, base units (seconds, bytes), and
// bounded label sets. Nothing is labelled by client: one histogram per client would cost
// 1.2 KB each and tell an operator nothing. Labels that come from a game's code (systems,
// methods) are bounded by a named constant, and what lies beyond it is counted in
// netloop_metrics_series_refused_total.
package metrics
