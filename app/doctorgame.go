package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/schema"
)

// examineGame reports the costs of a game's declarations. sent has the bytes of each field that a
// running server has sent, by "class.Field"; nil means that no server was asked.
func examineGame(g netloop.Game, sent map[string]float64) []finding {
	sc := bridge.Netloop.Schema(g.Schema())
	return []finding{examineSchema(sc), examineFloats(sc, sent), examineMethods(sc)}
}

// examineSchema reports the size of the largest class.
func examineSchema(sc *schema.Schema) finding {
	fields, largest, at := 0, 0, "no class"
	for _, c := range sc.AllClasses() {
		fields += c.Leaves()
		if bits, of := c.Plan().MaxDelta(); bits > largest {
			largest, at = bits, fmt.Sprintf("an object of %s is sent in at most %d bytes, %s has most of them", c.Name(), (bits+7)/8, of)
		}
	}
	return finding{about: "schema", is: fmt.Sprintf("%d classes with %d fields: %s", len(sc.AllClasses()), fields, at)}
}

// examineFloats finds floats that are sent exactly: without a step each change takes
// several times the bits.
func examineFloats(sc *schema.Schema, sent map[string]float64) finding {
	var exact []string
	all := 0.0
	for _, n := range sent {
		all += n
	}
	for _, c := range sc.AllClasses() {
		for _, l := range c.DescribeLeaves() {
			name := c.Name() + "." + l.Name
			switch t := c.TypeOf(l.Name); {
			case t != "float32" && t != "float64":
			case sent == nil:
				exact = append(exact, name)
			case sent[name] > 0:
				exact = append(exact, fmt.Sprintf("%s (%.0f %% of all bytes of fields)", name, 100*sent[name]/all))
			}
		}
	}
	f := finding{about: "floats", is: "all have a step"}
	switch {
	case len(exact) > 0:
		f.is, f.note = "without a step: "+firstOf(exact), true
		f.remedy = "give those that move a step, such as `net:\"quant=1/32\"`: a change then takes a third of the bits or less"
	case sent != nil:
		f.is = "those that were sent have a step"
	}
	return f
}

// examineMethods finds messages that a client may send as often as its own rate allows.
func examineMethods(sc *schema.Schema) finding {
	var free []string
	for _, m := range sc.AllMethods() {
		if !m.ServerOnly && m.Queue.PerTick == 0 && m.Queue.Limit.Burst == 0 {
			free = append(free, m.Queue.Name)
		}
	}
	if len(free) == 0 {
		return finding{about: "messages", is: "each has a limit, or only the server sends it"}
	}
	return finding{
		about: "messages", is: "without a limit of their own: " + firstOf(free), note: true,
		remedy: "declare them with netloop.Limit, a little above the rate of a player, or with netloop.ServerOnly: otherwise --client-rate alone bounds them",
	}
}

// firstOf joins the first few names.
func firstOf(names []string) string {
	const most = 8
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// examineRunning reports the costs of a game in a running server: its declarations, with the fields
// that it has sent, and its systems.
func (p *program) examineRunning(ctx context.Context, f *adminFlags, room url.Values) ([]finding, error) {
	page, _, err := f.ask(ctx, http.MethodGet, "metrics", nil)
	if err != nil {
		return nil, err
	}
	v, err := fetchLoop(ctx, f, room)
	if err != nil {
		return nil, err
	}
	systems, err := examineSystems(v)
	return append(examineGame(p.game, sentFields(page)), systems...), err
}

// fieldBytes is a line of /metrics about the bytes of a field.
var fieldBytes = regexp.MustCompile(`(?m)^netloop_replication_field_bytes_total\{class="([^"]*)",field="([^"]*)"\} (\S+)$`)

// sentFields reads the bytes of each field from the text of /metrics.
func sentFields(page []byte) map[string]float64 {
	sent := map[string]float64{}
	for _, m := range fieldBytes.FindAllSubmatch(page, -1) {
		if n, err := strconv.ParseFloat(string(m[3]), 64); err == nil {
			sent[string(bytes.Join(m[1:3], []byte(".")))] += n
		}
	}
	return sent
}

// examineSystems finds the systems that take half of a tick, and names the most expensive one.
func examineSystems(v loop.View) ([]finding, error) {
	period, err := periodOf(v.Rate)
	fixed, fixedErr := periodOf(v.FixedRate)
	if err = errors.Join(err, fixedErr); err != nil {
		return nil, err
	}
	share := func(d time.Duration, calls int64) int64 { return calls * 100 * d.Nanoseconds() / period.Nanoseconds() }
	type cost struct {
		name    string
		of, p99 int64 // percent of a tick
	}
	var all []cost
	for _, stage := range v.Stages {
		steps := int64(1)
		if stage.Stage == loop.FixedUpdate {
			steps = max(1, int64(period/fixed))
		}
		for _, s := range stage.Systems {
			if s.Cost != nil && s.Cost.Runs > 0 && s.Place == loop.Body {
				all = append(all, cost{s.Path(), share(s.Cost.Mean, steps), share(s.Cost.P99, steps)})
			}
		}
	}
	if len(all) == 0 {
		return []finding{{about: "systems", is: "none has run"}}, nil
	}
	slices.SortFunc(all, func(a, b cost) int { return cmp.Compare(b.of, a.of) })
	var found []finding
	for _, c := range all {
		f := finding{about: "systems", is: fmt.Sprintf("%s takes %d %% of a tick on average, %d %% in one of 100", c.name, c.of, c.p99)}
		switch {
		case c.of >= 50:
			f.remedy = "make it cheaper, run it less often (netloop.Every), or lower --tick-rate: /ticks/slow and /debug/pprof/profile show where the time goes"
		case c.p99 >= 50:
			f.note, f.remedy = true, "spread its work over ticks: its slow calls make ticks late"
		case len(found) > 0:
			continue // The most expensive one is shown in any case.
		}
		found = append(found, f)
	}
	return found, nil
}

// periodOf returns the period of a rate like "60 Hz" or "30000/1001 Hz".
func periodOf(text string) (time.Duration, error) {
	r := loop.Rate{Den: 1}
	if n, _ := fmt.Sscanf(text, "%d/%d Hz", &r.Num, &r.Den); n < 1 || r.Check() != nil {
		return 0, &failure{fmt.Errorf("--running: %q is not the rate of a netloop server of this version", text)}
	}
	return r.Period(), nil
}
