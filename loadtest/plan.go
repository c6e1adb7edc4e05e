package loadtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is a change of the population that a run makes. The time of a join in the ramp is since
// the start of the ramp, the time of any other event since the start of the measured window.
type event struct {
	at     time.Duration
	client int
	again  bool // the client leaves and joins anew
	drop   bool // its connection breaks; without both it joins for the first time
}

// The schedules of the number of clients.
const (
	constant  = "const" // all connect in the ramp
	stepwise  = "step"  // a tenth connects in the ramp, the others in nine equal steps
	linear    = "line"  // one connects in the ramp, the others evenly over the measured window
	loadSteps = 10
)

// maxEvents bounds the events of a run: 1 % a second of 10 000 clients for more than two hours.
const maxEvents = 1_000_000

// plan returns the joins of the ramp and the events of the measured window, in order. It depends on
// the options alone, so that two runs of one seed change the same clients at the same times.
func (o *options) plan() (ramp, window []event) {
	for n := range o.clients {
		e := event{client: n}
		switch late := o.joinShare(n); {
		case o.schedule == constant || late < 0:
			e.at = time.Duration(int64(o.ramp) * int64(n) / int64(o.clients))
			ramp = append(ramp, e)
		default:
			e.at = time.Duration(late * float64(o.duration))
			window = append(window, e)
		}
	}
	window = append(window, o.churnEvents()...)
	if o.stormAt >= 0 {
		for n := range o.clients {
			window = append(window, event{at: o.stormAt, client: n, again: o.stormBy == stormLeave, drop: o.stormBy == stormDrop})
		}
	}
	slices.SortStableFunc(window, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return ramp, window
}

// joinShare returns the share of the measured window after which client n joins, and less than 0
// for a client of the ramp.
func (o *options) joinShare(n int) float64 {
	at := float64(n) / float64(o.clients)
	switch {
	case o.schedule == linear && n > 0:
		return at
	case o.schedule == stepwise && n >= 1 && int(at*loadSteps) >= 1:
		return float64(int(at*loadSteps)) / loadSteps
	}
	return -1
}

// churnEvents returns the clients that are replaced, evenly over the measured window.
func (o *options) churnEvents() (all []event) {
	if o.churnRate == 0 {
		return nil
	}
	period := time.Duration(float64(time.Second) / (o.churnRate * float64(o.clients)))
	rng := rand.New(rand.NewPCG(o.seed, churnStream))
	for at := period; at < o.duration; at += period {
		all = append(all, event{at: at, client: rng.IntN(o.clients), again: true})
	}
	return all
}

// churnStream separates the random numbers of --churn from those of the bots.
const churnStream = 1 << 62

// parseSchedule parses the flags of the population.
func (o *options) parseSchedule() (err error) {
	o.schedule = cmp.Or(o.schedule, constant)
	if !slices.Contains([]string{constant, stepwise, linear}, o.schedule) {
		return badFlag("schedule", o.schedule, "use const, step or line")
	}
	if o.churn != "" {
		text, ok := strings.CutSuffix(o.churn, "/s")
		if o.churnRate, err = parseShare(text); err != nil || !ok {
			return badFlag("churn", o.churn, "use a share of the clients per second, as in 1%/s")
		}
		if n := o.churnRate * float64(o.clients) * o.duration.Seconds(); n > maxEvents {
			return badFlag("churn", o.churn, fmt.Sprintf("it would replace %.0f clients, at most %d: use a smaller share or a shorter --duration", n, maxEvents))
		}
	}
	switch o.stormAt = -1; o.storm {
	case "":
	case halfway:
		o.stormAt = o.duration / 2
	default:
		if o.stormAt, err = time.ParseDuration(o.storm); err != nil || o.stormAt < 0 || o.stormAt >= o.duration {
			return badFlag("storm", o.storm, "use a time in the measured window, as in --storm=10s")
		}
	}
	switch o.stormBy = cmp.Or(o.stormBy, stormLeave); {
	case o.stormBy != stormLeave && o.stormBy != stormDrop:
		return badFlag("storm-by", o.stormBy, "use leave or drop")
	case o.stormBy == stormDrop && (o.stormAt < 0 || !o.reconnect):
		return badFlag("storm-by", o.stormBy, "give --storm too, and let the bots reconnect")
	}
	if o.slow != "" {
		part, err := parseShare(o.slow)
		if err != nil {
			return badFlag("slow-readers", o.slow, "use a share of the clients, as in 10%")
		}
		o.slowOf = deal([]share{{"slow", part}, {"", 1 - part}}, o.clients)
	}
	return nil
}

// The values of --storm-by, and that of --storm without one.
const (
	stormLeave = "leave" // and join anew
	stormDrop  = "drop"  // the connections break, and the clients resume their seats
	halfway    = "halfway"
)

// parseShare reads a share such as 10%.
func parseShare(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(x > 0 && x <= 100) {
		return 0, fmt.Errorf("%q is no share", text)
	}
	return x / 100, nil
}

// share is the weight of a name.
type share struct {
	name   string
	weight float64
}

// parseShares reads names with their weights, such as quic=80,websocket=20, or one name alone.
func parseShares(text string) (all []share, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, weight, weighted := strings.Cut(part, "=")
		s := share{name, 1}
		if weighted {
			if s.weight, err = strconv.ParseFloat(strings.TrimSuffix(weight, "%"), 64); err != nil || !(s.weight > 0 && s.weight <= 1e6) {
				return nil, fmt.Errorf("%q is no weight", weight)
			}
		}
		if name == "" || slices.ContainsFunc(all, func(o share) bool { return o.name == name }) {
			return nil, fmt.Errorf("%q is no list of names", text)
		}
		all = append(all, s)
	}
	return all, nil
}

// deal returns a name for each client, so that the names of the first clients always have their
// shares, as far as whole clients can.
func deal(shares []share, clients int) []string {
	sum := 0.0
	for _, s := range shares {
		sum += s.weight
	}
	dealt, names := make([]float64, len(shares)), make([]string, clients)
	for n := range names {
		best := 0
		lack := func(i int) float64 { return shares[i].weight/sum*float64(n+1) - dealt[i] }
		for i := range shares {
			if lack(i) > lack(best) {
				best = i
			}
		}
		dealt[best]++
		names[n] = shares[best].name
	}
	return names
}
