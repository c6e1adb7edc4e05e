// Package metrics provides a server's measurements: Prometheus series for operators, and the exact
// account of ticks (package ticks) for load tests.
//
// The measurements are one table (table.go): a row names a family, describes it, and gives the
// source of its values (source.go). The flow:
//
//	tick goroutine     ObserveTick(record): histograms, HDR counts, the account
//	                   Report(room): the room's plain numbers, four times a second
//	any goroutine      Add to a family that is counted into; ObserveFlushLag
//	scrape             the Server's atomics and the account, then all series are read
//
// One *Metrics is one prometheus.Collector. It has its own registry, so that two servers in a
// process never collide. It is also registered in the caller's registry, if the caller passes one.
//
// All series follow these rules: prefix netloop_, base units (seconds, bytes), and bounded label
// sets. No label names a client: one histogram per client would take 1.2 KB, and would not help an
// operator. Labels from a game's code (systems, methods) are bounded by a named constant, and
// label sets beyond it are counted in netloop_metrics_series_refused_total.
package metrics
