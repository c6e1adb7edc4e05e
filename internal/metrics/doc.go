// Package metrics is what a server tells about itself: Prometheus series for operators,
// and the exact account of ticks (package ticks) for load tests.
//
// The flow:
//
//	tick goroutine        ObserveTick(record): histograms, counters, HDR counts
//	writer goroutines     ObserveFlushLag
//	owners of counters    Add (a difference) or Set (their own running total)
//	scrape                hooks registered with OnCollect copy atomics, then everything is read
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
