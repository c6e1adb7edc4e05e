package loadtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// threshold is a bound of a metric, such as snapshot.age.p99<3ticks+rtt.
type threshold struct {
	text   string
	metric metric
	op     string // <, <=, > or >=
	terms  []term // their sum is the bound
}

// term is a part of a bound.
type term struct {
	x float64
	// of is the scale of x: itself, ticks, the clients' round trip, or a share of the reference.
	of scale
}

type scale uint8

const (
	absolute scale = iota
	ticksOf
	rttOf
	// shareOf the reference of the metric: the tick for times, the tick rate for rates.
	shareOf
)

var (
	comparison = regexp.MustCompile(`^\s*([a-z0-9_.]+)\s*(<=|>=|<|>)\s*(.+?)\s*$`)
	quantity   = regexp.MustCompile(`^([0-9.]+)\s*([A-Za-zµ%]*)$`)
	byteUnits  = map[string]float64{"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// parseThreshold reads a threshold. The error names the nearest metric, or the units.
func parseThreshold(text string) (t threshold, err error) {
	parts := comparison.FindStringSubmatch(text)
	if parts == nil {
		return t, fmt.Errorf("%q is no threshold: write a metric, <, <=, > or >=, and a bound, as in snapshot.age.p99<120ms", text)
	}
	m, ok := named(parts[1])
	if !ok {
		return t, fmt.Errorf("%q is no metric%s: docs/LOAD.md lists them", parts[1], nearest(parts[1]))
	}
	t = threshold{text: strings.Join(strings.Fields(text), ""), metric: m, op: parts[2]}
	for part := range strings.SplitSeq(parts[3], "+") {
		one, ok := parseTerm(strings.TrimSpace(part), m.unit)
		if !ok {
			return t, fmt.Errorf("%q of %s: %s", part, text, unitsOf(m.unit))
		}
		t.terms = append(t.terms, one)
	}
	return t, nil
}

func unitsOf(u unit) string {
	switch u {
	case inMillis:
		return "use a time such as 120ms, ticks as in 3ticks, a share of a tick as in 50%, or rtt; + adds them"
	case inHertz:
		return "use a rate such as 59.5Hz, or a share of the tick rate as in 99%"
	case inBytes:
		return "use bytes such as 20kB or 512MiB"
	case inCores:
		return "use cores, such as 0.5"
	case asShare:
		return "use a share, such as 1%"
	case asCount:
	}
	return "use a number"
}

func parseTerm(text string, u unit) (term, bool) {
	if text == "rtt" {
		return term{1, rttOf}, u == inMillis
	}
	parts := quantity.FindStringSubmatch(text)
	if parts == nil {
		return term{}, false
	}
	x, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return term{}, false
	}
	switch suffix := parts[2]; {
	case suffix == "%" && (u == inMillis || u == inHertz):
		return term{x / 100, shareOf}, true
	case suffix == "%" && u == asShare:
		return term{x / 100, absolute}, true
	case u == inMillis && (suffix == "tick" || suffix == "ticks"):
		return term{x, ticksOf}, true
	case u == inMillis:
		d, err := time.ParseDuration(text)
		return term{d.Seconds() * 1e3, absolute}, err == nil
	case u == inBytes:
		k, ok := byteUnits[suffix]
		return term{x * k, absolute}, ok
	case u == inHertz && suffix == "Hz", u == inCores && (suffix == "core" || suffix == "cores"):
		return term{x, absolute}, true
	}
	return term{x, absolute}, parts[2] == ""
}

// bound returns the bound for a result, or nil if a part of it is unknown.
func (t *threshold) bound(r *Result) *float64 {
	sum := 0.0
	for _, part := range t.terms {
		scale := 1.0
		switch tick := r.Run.Tick; {
		case part.of == absolute:
		case part.of == rttOf && r.Network.RTT != nil:
			scale = *r.Network.RTT
		case part.of == rttOf || tick == nil || *tick == 0:
			return nil
		case part.of == shareOf && t.metric.unit == inHertz:
			scale = 1000 / *tick
		default:
			scale = *tick
		}
		sum += part.x * scale
	}
	return &sum
}

// Judgement is the outcome of a threshold. It is not met if its value or its bound is unknown.
type Judgement struct {
	Threshold string   `json:"threshold"`
	Metric    string   `json:"metric"`
	Unit      string   `json:"unit"`
	Value     *float64 `json:"value"`
	Bound     *float64 `json:"bound"`
	Met       bool     `json:"met"`
}

// judge compares a result with the threshold.
func (t *threshold) judge(r *Result) Judgement {
	j := Judgement{Threshold: t.text, Metric: t.metric.name, Unit: string(t.metric.unit), Value: t.metric.of(r), Bound: t.bound(r)}
	if j.Value == nil || j.Bound == nil {
		return j
	}
	switch x, b := *j.Value, *j.Bound; t.op {
	case "<":
		j.Met = x < b
	case "<=":
		j.Met = x <= b
	case ">":
		j.Met = x > b
	case ">=":
		j.Met = x >= b
	}
	return j
}

// parseThresholds parses --threshold. A figure of the server needs --admin.
func (o *options) parseThresholds() error {
	o.bounds = nil
	for _, text := range o.thresholds {
		t, err := parseThreshold(text)
		if err != nil {
			return fmt.Errorf("--threshold: %w", err)
		}
		if o.admin == "" && strings.HasPrefix(t.metric.name, "server.") {
			return badFlag("threshold", text, "give --admin too: it is a figure of the server")
		}
		o.bounds = append(o.bounds, t)
	}
	return nil
}

// show formats a figure with its unit.
func show(x *float64, u unit) string {
	if x == nil {
		return "–"
	}
	switch u {
	case asShare:
		return percent(x) + " %"
	case inBytes:
		switch {
		case *x >= 1e6:
			return fmt.Sprintf("%.1f MB", *x/1e6)
		case *x >= 1e3:
			return fmt.Sprintf("%.1f kB", *x/1e3)
		}
		return fmt.Sprintf("%.0f B", *x)
	case asCount:
		return strconv.FormatFloat(*x, 'f', -1, 64)
	case inMillis, inHertz, inCores:
	}
	return figure(x) + " " + string(u)
}
