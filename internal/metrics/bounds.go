package metrics

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Operation: {
		{
			Name: "label sets of a metric",
			Default: limits.Say("%v of systems, %v of methods, %v of classes, %v of fields, %v of others",
				maxSystems, maxRPCs, maxClasses, maxFields, maxOthers),
			Unit: "series", Counter: "netloop_metrics_series_refused_total", Full: "not counted",
		},
	}}
}
