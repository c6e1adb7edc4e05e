package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// panel is a graph, or a single figure if it has steps.
type panel struct {
	title, unit string
	text        string // of the description, before the meanings of the series
	stacked     bool   // graphs are added up
	signed      bool   // values may be below 0
	steps       []dashboard.Threshold
	lines       []line
}

// line is an expression of a panel, with placeholders: see expand.
type line struct{ legend, expr string }

// section is a row of the dashboard and the panels below it.
type section struct {
	title  string
	panels []panel
}

// Colours of a figure, from a value on.
var (
	plain  = steps("text")
	rising = func(warn, bad float64) []dashboard.Threshold { return steps("green", warn, "orange", bad, "red") }
	// falling is for figures that are bad below a value.
	falling = func(bad, warn float64) []dashboard.Threshold { return steps("red", bad, "orange", warn, "green") }
)

// steps returns the thresholds of a colour, and then of pairs of a value and a colour.
func steps(base string, pairs ...any) []dashboard.Threshold {
	all := []dashboard.Threshold{{Color: base}}
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, dashboard.Threshold{Value: new(pairs[i].(float64)), Color: pairs[i+1].(string)})
	}
	return all
}

// quantile returns an expression for the quantile of a histogram's durations, by labels.
func quantile(q, histogram, by string) string {
	if by != "" {
		by += ", "
	}
	return "histogram_quantile(" + q + ", sum by (" + by + "le) (rate(" + histogram + "_bucket{*}[*])))"
}

// rate returns an expression for the events in a second, by labels.
func rate(counter, by string) string {
	return "sum by (" + by + ") (rate(" + counter + "[*]))"
}

// total is rate without labels.
func total(counter string) string { return "sum(rate(" + counter + "[*]))" }

// perTick is the divisor that makes a rate a share of a tick.
const perTick = " / scalar(sum(rate(netloop_ticks_total{*}[*])))"

// rare is for a total of events that a healthy server never counts: without it such a panel would
// be empty, and look like a broken one.
func rare(counter string) string { return total(counter) + " or vector(0)" }

var rows = []section{
	{"Figures", []panel{
		{title: "Clients", unit: units.Short, steps: plain, lines: []line{{"clients", "sum(netloop_clients{*})"}}},
		{title: "Rooms", unit: units.Short, steps: plain, lines: []line{{"rooms", "sum(netloop_rooms{*})"}}},
		{title: "Tick p99", unit: units.Seconds, steps: plain, lines: []line{{"p99", quantile("0.99", "netloop_tick_duration_seconds", "")}}},
		{title: "Headroom", unit: units.PercentUnit, steps: falling(0.1, 0.3),
			text:  "The part of the tick period that 99 of 100 ticks leave unused, of the server with the least.",
			lines: []line{{"headroom", "min(1 - " + quantile("0.99", "netloop_tick_duration_seconds", "instance") + " / on (instance) netloop_tick_period_seconds{*})"}}},
		{title: "Tick rate", unit: units.Hertz, steps: plain, lines: []line{{"rate", "sum(netloop_tick_rate_hertz{*})"}}},
		{title: "Overload", unit: units.Short, steps: rising(1, 3), lines: []line{{"level", "max(netloop_overload_level{*})"}}},
	}},
	{"Ticks", []panel{
		{title: "Tick duration and period", unit: units.Seconds, text: "A tick must be shorter than its period.", lines: []line{
			{"p50 {{instance}}", quantile("0.5", "netloop_tick_duration_seconds", "instance")},
			{"p99 {{instance}}", quantile("0.99", "netloop_tick_duration_seconds", "instance")},
			{"period {{instance}}", "netloop_tick_period_seconds{*}"},
		}},
		{title: "Lateness of ticks", unit: units.Seconds, lines: []line{
			{"p50 {{instance}}", quantile("0.5", "netloop_tick_lateness_seconds", "instance")},
			{"p99 {{instance}}", quantile("0.99", "netloop_tick_lateness_seconds", "instance")},
		}},
		{title: "Average tick by stage", unit: units.Seconds, stacked: true, lines: []line{
			{"{{stage}}", rate("netloop_stage_duration_seconds_sum{*}", "stage") + perTick},
		}},
		{title: "Systems with the most time per tick", unit: units.Seconds, lines: []line{
			{"{{system}}", "topk(10, " + rate("netloop_system_duration_seconds_sum{*}", "system") + perTick + ")"},
		}},
		{title: "Late, dropped and overloaded ticks", unit: units.CountsPerSecond, lines: []line{
			{"overruns", total("netloop_tick_overruns_total{*}")},
			{"dropped", total("netloop_dropped_ticks_total{*}")},
			{"overloaded", total("netloop_overloaded_ticks_total{*}")},
			{"hung", total("netloop_hung_ticks_total{*}")},
		}},
		{title: "Faults of the game's code", unit: units.CountsPerSecond, text: "The log names the function, the class and the field.", lines: []line{
			{"panics", rare("netloop_system_panics_total{*}")},
			{"missed calls of periodic systems", rare("netloop_system_missed_total{*}")},
			{"misuses of state", rare("netloop_state_misuses_total{*}")},
			{"systems in quarantine", "sum(netloop_systems_quarantined{*})"},
		}},
	}},
	{"Messages", []panel{
		{title: "Methods with the most messages", unit: units.CountsPerSecond, lines: []line{
			{"{{method}}", `topk(10, ` + rate("netloop_rpcs_total{*}", "method") + `)`},
		}},
		{title: "Messages by outcome", unit: units.CountsPerSecond, lines: []line{
			{"{{outcome}}", rate("netloop_rpcs_total{*}", "outcome")},
			{"waited for the next tick", total("netloop_rpcs_waited_total{*}")},
			{"actions of limits", rare("netloop_rpc_limits_total{*}")},
		}},
		{title: "Entries in queues", unit: units.Short, lines: []line{
			{"{{queue}}", "sum by (queue) (netloop_queue_depth{*})"},
		}},
		{title: "Entries that queues dropped", unit: units.CountsPerSecond, lines: []line{
			{"{{queue}}: {{reason}}", rate("netloop_queue_drops_total{*}", "queue, reason")},
		}},
	}},
	{"Replication", []panel{
		{title: "Bytes of records by class", unit: units.BytesPerSecondIEC, stacked: true, lines: []line{
			{"{{class}}", rate("netloop_replication_bytes_total{*}", "class")},
		}},
		{title: "Fields with the most bytes", unit: units.BytesPerSecondIEC, lines: []line{
			{"{{class}}.{{field}}", "topk(10, " + rate("netloop_replication_field_bytes_total{*}", "class, field") + ")"},
		}},
		{title: "Snapshot bytes per client", unit: units.BytesPerSecondIEC, lines: []line{
			{"{{instance}}", "sum by (instance) (rate(netloop_snapshot_bytes_total{*}[*])) / (sum by (instance) (netloop_clients{*}) > 0)"},
		}},
		{title: "Snapshots deferred", unit: units.CountsPerSecond, text: "slot_busy: the connection has not sent the last one. window_closed: too many are unacknowledged.", lines: []line{
			{"all", rare("netloop_snapshots_deferred_total{*}")},
			{"{{reason}}", rate("netloop_snapshots_deferred_total{*}", "reason")},
		}},
		{title: "Records that waited", unit: units.CountsPerSecond, lines: []line{
			{"{{reason}}", rate("netloop_snapshot_records_waited_total{*}", "reason")},
		}},
		{title: "Records and full states", unit: units.CountsPerSecond, lines: []line{
			{"records", total("netloop_snapshot_records_total{*}")},
			{"full: {{reason}}", rate("netloop_full_states_total{*}", "reason")},
		}},
		{title: "Changes of visibility", unit: units.CountsPerSecond, lines: []line{
			{"{{change}}", rate("netloop_visibility_changes_total{*}", "change")},
		}},
		{title: "Values held back or clamped", unit: units.CountsPerSecond, lines: []line{
			{"held: {{reason}}", rate("netloop_held_values_total{*}", "reason")},
			{"clamped", total("netloop_clamped_values_total{*}")},
		}},
	}},
	{"Feel", []panel{
		{title: "Share of inputs missed", unit: units.PercentUnit, text: "Of the fixed steps of clients, those that ran without an input of their own: each is a misprediction.", lines: []line{
			{"missed", total(`netloop_inputs_total{*,outcome="missed"}`) + " / (" + total(`netloop_inputs_total{*,outcome=~"applied|missed"}`) + " > 0)"},
		}},
		{title: "Inputs that were not applied, and mispredictions", unit: units.CountsPerSecond, lines: []line{
			{"{{outcome}}", rate(`netloop_inputs_total{*,outcome!="applied"}`, "outcome")},
			{"mispredicted", total("netloop_mispredictions_reported_total{*}")},
		}},
		{title: "Margin of inputs", unit: units.Seconds, signed: true, lines: []line{
			{"{{kind}} {{instance}}", "netloop_input_margin_seconds{*}"},
		}},
		{title: "Views that were clamped", unit: units.CountsPerSecond, lines: []line{
			{"{{outcome}}", rate(`netloop_views_total{*,outcome!="as_sent"}`, "outcome")},
		}},
		{title: "Flush lag", unit: units.Seconds, lines: []line{
			{"p50", quantile("0.5", "netloop_flush_lag_seconds", "")},
			{"p99", quantile("0.99", "netloop_flush_lag_seconds", "")},
		}},
		{title: "Speed of scaled time", unit: units.Short, lines: []line{
			{"{{instance}}", "netloop_time_scale{*}"},
		}},
	}},
	{"Transport", []panel{
		{title: "Bytes", unit: units.BytesPerSecondIEC, lines: []line{
			{"{{direction}}", rate("netloop_transport_bytes_total{*}", "direction")},
		}},
		{title: "Datagrams", unit: units.PacketsPerSecond, text: "All datagrams, and the part of them that are sealed packets beside QUIC.", lines: []line{
			{"{{direction}}", rate("netloop_transport_packets_total{*}", "direction")},
			{"{{outcome}}", rate(`netloop_records_total{*,outcome=~"sealed|opened"}`, "outcome")},
		}},
		{title: "Lost, unsent and forged packets", unit: units.PacketsPerSecond, lines: []line{
			{"sealed: {{outcome}}", rate(`netloop_records_total{*,outcome!~"sealed|opened"}`, "outcome")},
			{"socket: {{outcome}}", rate(`netloop_socket_packets_total{*,outcome!="moved"}`, "outcome")},
			{"choke", total("netloop_choke_total{*}")},
			{"retries of the socket", total("netloop_socket_retries_total{*}")},
		}},
		{title: "UDP packets per call to the kernel", unit: units.Short, lines: []line{
			{"{{direction}}", rate(`netloop_socket_packets_total{*,outcome="moved"}`, "direction") + " / (" + rate("netloop_socket_calls_total{*}", "direction") + " > 0)"},
		}},
		{title: "Calls to the kernel", unit: units.CountsPerSecond, lines: []line{
			{"{{direction}}", rate("netloop_socket_calls_total{*}", "direction")},
		}},
		{title: "Time at the socket", unit: units.Seconds, lines: []line{
			{"sending p99", quantile("0.99", "netloop_socket_lag_seconds", "")},
			{"reading p99", quantile("0.99", "netloop_socket_wait_seconds", "")},
		}},
		{title: "Connections", unit: units.Short, lines: []line{
			{"clients", "sum(netloop_clients{*})"},
			{"beside QUIC", "sum(netloop_record_clients{*})"},
			{"dropped", "sum(netloop_clients_dropped{*})"},
			{"unadmitted", "sum(netloop_strangers{*})"},
		}},
		{title: "Joins and refusals", unit: units.CountsPerSecond, lines: []line{
			{"{{transport}}", rate("netloop_joins_total{*}", "transport")},
			{"refused", total("netloop_refusals_total{*}")},
		}},
		{title: "Ends of connections", unit: units.CountsPerSecond, lines: []line{
			{"{{code}}", rate("netloop_disconnects_total{*}", "code")},
		}},
	}},
	{"Rooms", []panel{
		{title: "Rooms by kind", unit: units.Short, lines: []line{
			{"{{kind}} rooms", "sum by (kind) (netloop_rooms{*})"},
			{"{{kind}} asleep", "sum by (kind) (netloop_rooms_asleep{*})"},
		}},
		{title: "Clients by kind", unit: units.Short, stacked: true, lines: []line{
			{"clients {{kind}}", "sum by (kind) (netloop_room_clients{*})"},
		}},
		{title: "Tick p99 by kind", unit: units.Seconds, lines: []line{
			{"{{kind}}", quantile("0.99", "netloop_room_tick_duration_seconds", "kind") +
				` or label_replace(` + quantile("0.99", "netloop_tick_duration_seconds", "") + `, "kind", "all rooms", "", "")`},
		}},
		{title: "Rooms opened and ended", unit: units.CountsPerSecond, lines: []line{
			{"opened {{kind}}", rate("netloop_rooms_opened_total{*}", "kind")},
			{"ended", rare("netloop_rooms_ended_total{*}")},
		}},
	}},
	{"Runtime", []panel{
		{title: "Processor", unit: units.PercentUnit, text: "Cores in use by the process, and by the garbage collector alone.", lines: []line{
			{"{{instance}}", "rate(process_cpu_seconds_total{*}[*])"},
			{"garbage collector {{instance}}", "rate(go_cpu_classes_gc_total_cpu_seconds_total{*}[*])"},
		}},
		{title: "Memory", unit: units.BytesIEC, text: "Memory of the process, and the part of Go's objects and stacks.", lines: []line{
			{"resident {{instance}}", "process_resident_memory_bytes{*}"},
			{"objects {{instance}}", "go_memory_classes_heap_objects_bytes{*}"},
			{"next collection at {{instance}}", "go_gc_heap_goal_bytes{*}"},
			{"stacks {{instance}}", "go_memory_classes_heap_stacks_bytes{*}"},
		}},
		{title: "Goroutines and threads", unit: units.Short, text: "A connection has three goroutines or more, a room one.", lines: []line{
			{"goroutines {{instance}}", "go_goroutines{*}"},
			{"threads {{instance}}", "go_threads{*}"},
		}},
		{title: "Pauses by the garbage collector", unit: units.Seconds, text: "Time for which a collection stops all goroutines: the median and the longest of the last collections.", lines: []line{
			{"median {{instance}}", `go_gc_duration_seconds{*,quantile="0.5"}`},
			{"longest {{instance}}", `go_gc_duration_seconds{*,quantile="1"}`},
		}},
		{title: "Wait for a processor", unit: units.Seconds, text: "Time from the moment when a goroutine can run until it runs.", lines: []line{
			{"p99", quantile("0.99", "go_sched_latencies_seconds", "")},
		}},
		{title: "Losses of monitoring", unit: units.CountsPerSecond, lines: []line{
			{"log lines", total("netloop_logs_dropped_total{*}")},
			{"series refused", total("netloop_metrics_series_refused_total{*}")},
		}},
	}},
}
