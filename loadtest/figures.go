package loadtest

import "slices"

// unit is the unit of a figure.
type unit string

const (
	inMillis unit = "ms"
	inHertz  unit = "Hz"
	inBytes  unit = "B"
	inCores  unit = "cores"
	asShare  unit = "%" // figures of 0 to 1
	asCount  unit = ""
)

// direction is the direction in which a figure is better.
type direction int8

const (
	lower   direction = -1
	neither direction = 0
	higher  direction = 1
)

// metric is a named figure of a [Result], for thresholds and comparisons.
type metric struct {
	name   string
	unit   unit
	better direction
	of     func(*Result) *float64 // nil if unknown
	// gate marks a figure by which compare judges a run, because it repeats well.
	gate bool
}

// allMetrics are all named figures. Their names never change, because scripts use them.
var allMetrics = slices.Concat(
	[]metric{
		{"snapshot.rate.p50", inHertz, higher, func(r *Result) *float64 { return r.Snapshots.Rate.P50 }, true},
		{"snapshot.rate.min", inHertz, higher, func(r *Result) *float64 { return r.Snapshots.Rate.Min }, false},
		{"snapshot.bytes", inBytes, lower, func(r *Result) *float64 { return r.Snapshots.Bytes }, true},
	},
	spreadMetrics("snapshot.age", func(r *Result) *Spread { return &r.Snapshots.Age }),
	spreadMetrics("snapshot.interval", func(r *Result) *Spread { return &r.Snapshots.Interval }),
	[]metric{
		{"call.latency.p50", inMillis, lower, func(r *Result) *float64 { return r.RPC.RTT.P50 }, true},
		{"call.latency.p90", inMillis, lower, func(r *Result) *float64 { return r.RPC.RTT.P90 }, false},
		{"call.latency.p99", inMillis, lower, func(r *Result) *float64 { return r.RPC.RTT.P99 }, false},
		{"call.latency.p999", inMillis, lower, func(r *Result) *float64 { return r.RPC.RTT.P999 }, false},
		{"call.latency.max", inMillis, lower, func(r *Result) *float64 { return r.RPC.RTT.Max }, false},
		{"call.answered", asShare, higher, func(r *Result) *float64 { return ratio(float64(r.RPC.Answered), float64(r.RPC.Sent)) }, false},
	},
	spreadMetrics("server.tick", func(r *Result) *Spread { return &r.Server.Tick }),
	spreadMetrics("server.lateness", func(r *Result) *Spread { return &r.Server.Lateness }),
	[]metric{
		{"server.rate", inHertz, higher, func(r *Result) *float64 { return r.Server.TickRate }, false},
		{"server.flush.p99", inMillis, lower, func(r *Result) *float64 { return r.Server.FlushLag }, false},
		{"server.overruns", asCount, lower, func(r *Result) *float64 { return number(r.Server.Overruns) }, false},
		{"server.dropped", asCount, lower, func(r *Result) *float64 { return number(r.Server.DroppedTicks) }, false},
		{"server.cpu", inCores, lower, func(r *Result) *float64 { return r.Server.Process.CPU }, true},
		{"server.memory", inBytes, lower, func(r *Result) *float64 { return r.Server.Process.Memory }, false},
		{"server.goroutines", asCount, lower, func(r *Result) *float64 { return r.Server.Process.Goroutines }, false},
		{"server.bytes_down", inBytes, lower, func(r *Result) *float64 { return r.Network.BytesDown }, false},
		{"server.bytes_up", inBytes, lower, func(r *Result) *float64 { return r.Network.BytesUp }, false},
		{"server.chokes", asCount, lower, func(r *Result) *float64 { return r.Network.Chokes }, false},
	},
	spreadMetrics("join.latency", func(r *Result) *Spread { return &r.Joins.Latency }),
	[]metric{
		{"join.rate", inHertz, neither, func(r *Result) *float64 { return r.Joins.Rate }, false},
		{"clients.connected", asShare, higher, func(r *Result) *float64 { return ratio(float64(r.Clients.Connected), float64(r.Clients.Wanted)) }, false},
		{"clients.lost", asCount, lower, func(r *Result) *float64 { return whole(r.Clients.Disconnected) }, false},
		{"clients.drops", asCount, lower, func(r *Result) *float64 { return whole(r.Clients.Drops) }, false},
	},
	spreadMetrics("feel.view_delay", func(r *Result) *Spread { return &r.Feel.Delay }),
	[]metric{
		{"feel.starved", asShare, lower, func(r *Result) *float64 { return r.Feel.Starved }, false},
		{"feel.inputs_missed", asShare, lower, func(r *Result) *float64 { return ratio(float64(r.Feel.InputsMissed), float64(r.Feel.Inputs)) }, false},
		{"feel.mispredicted", asCount, lower, func(r *Result) *float64 { return r.Feel.Mispredicted }, false},
		{"feel.hits_confirmed", asShare, higher, func(r *Result) *float64 { return ratio(float64(r.Feel.Confirmed), float64(r.Feel.Hits)) }, false},
	},
	spreadMetrics("generator.lateness", func(r *Result) *Spread { return &r.Generator.Lateness }),
	[]metric{
		{"generator.cpu", inCores, neither, func(r *Result) *float64 { return r.Generator.Process.CPU }, false},
		{"generator.memory", inBytes, neither, func(r *Result) *float64 { return r.Generator.Process.Memory }, false},
	},
)

// spreadMetrics returns the figures of a distribution of times. Its median repeats well; compare
// judges no run by the load client's own lateness.
func spreadMetrics(name string, of func(*Result) *Spread) []metric {
	gate := name == "snapshot.age" || name == "server.tick"
	return []metric{
		{name + ".p50", inMillis, lower, func(r *Result) *float64 { return of(r).P50 }, gate},
		{name + ".p99", inMillis, lower, func(r *Result) *float64 { return of(r).P99 }, false},
		{name + ".p999", inMillis, lower, func(r *Result) *float64 { return of(r).P999 }, false},
		{name + ".max", inMillis, lower, func(r *Result) *float64 { return of(r).Max }, false},
	}
}

func whole(n int) *float64 { return new(float64(n)) }

func number(n *uint64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// named returns the metric of a name, or false.
func named(name string) (metric, bool) {
	for _, m := range allMetrics {
		if m.name == name {
			return m, true
		}
	}
	return metric{}, false
}

func metricNames() []string {
	names := make([]string, len(allMetrics))
	for i, m := range allMetrics {
		names[i] = m.name
	}
	return names
}
