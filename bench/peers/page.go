package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"
)

// pageText is the page: its method is text, its tables and plots are made from the results.
//
//go:embed page.md.tmpl
var pageText string

// view is the data of the template.
type view struct {
	*results
	prices
}

// writePage writes the page, and the plots for which there are figures.
func writePage(file string, r *results, p prices) error {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	for name, plot := range plots {
		if err := writePlot(filepath.Join(filepath.Dir(file), name), plot(r)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var b strings.Builder
	if err := page.Execute(&b, view{r, p}); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// Measured reports whether there are figures.
func (v view) Measured() bool { return len(v.Cells) > 0 }

// Date returns the days on which the figures were measured.
func (v view) Date() string { return v.date() }

// CorePrice and GBPrice are the stated prices.
func (v view) CorePrice() string { return fmt.Sprintf("%g", v.core) }

// GBPrice is the price of a GB.
func (v view) GBPrice() string { return fmt.Sprintf("%g", v.gigabyte) }

// Plot reports whether a plot was made.
func (v view) Plot(name string) bool { return len(plots[name](v.results)) > 0 }

// table writes a Markdown table.
type table struct{ strings.Builder }

func (t *table) row(cells ...string) { fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | ")) }

func (t *table) head(cells ...string) {
	t.row(cells...)
	fmt.Fprintf(t, "|%s\n", strings.Repeat("---|", len(cells)))
}

// none is shown instead of an invalid figure.
const none = "–"

// figure formats a figure of a cell, or none if it has no valid ones.
func (r *results) figure(c cell, format func(outcome) string) string {
	o, ok := r.Cells[c.key()]
	if !ok || o.Note != "" {
		return none
	}
	return format(o)
}

// measured reports whether any peer has figures for a cell.
func (r *results) measured(c cell) bool {
	return slices.ContainsFunc(peers, func(p *peer) bool {
		c.peer = p
		_, ok := r.Cells[c.key()]
		return ok
	})
}

// round formats a figure with three significant digits at most.
func round(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

func pair(a, b float64) string { return round(a) + " / " + round(b) }

// age formats the age of the state.
func (o outcome) age() string {
	if o.Updates == 0 {
		return "no update"
	}
	return pair(o.AgeP50, o.AgeP99)
}

// Peers is the table of the peers with their versions.
func (v view) Peers() string {
	var t table
	t.head("peer", "version", "carrier")
	for _, p := range peers {
		version := v.Versions[p.name]
		switch {
		case v.Skipped[p.name] != "":
			version = "left out: " + v.Skipped[p.name]
		case version == "":
			version = "this one"
		}
		t.row(p.title, version, p.about)
	}
	return t.String()
}

// Loopback has a table for each world and rate.
func (v view) Loopback() string {
	var b strings.Builder
	for _, world := range fullPlan.worlds {
		for _, rate := range fullPlan.rates {
			c := cell{part: loopback, world: world, rate: rate}
			if text := v.load(c); text != "" {
				fmt.Fprintf(&b, "\n### %s, %d Hz\n\n%s", worldTitles[world], rate, text)
			}
		}
	}
	return b.String()
}

var worldTitles = map[string]string{"smooth": "Smooth motion", "flips": "Flipping motion", "tenth": "One in ten moves"}

// load is the table of a world at a rate.
func (v view) load(c cell) string {
	clients := slices.DeleteFunc(slices.Clone(fullPlan.clients), func(n int) bool {
		c.clients = n
		return !v.measured(c)
	})
	if len(clients) == 0 {
		return ""
	}
	var t table
	t.head("peer", "clients", "server, % of a core", "clients, % of a core", "bytes an update", "updates/s", "interval, ms", "age, ms", "server, MB", "kB a client")
	for _, p := range peers {
		c.peer = p
		for _, c.clients = range clients {
			o, ok := v.Cells[c.key()]
			switch {
			case !ok:
			case o.Note != "":
				t.row(p.title, fmt.Sprint(c.clients), none, none, none, none, none, none, none, none)
			default:
				t.row(p.title, fmt.Sprint(c.clients), round(100*o.Server), round(100*o.Clients), round(o.Bytes), round(o.Rate),
					pair(o.IntervalP50, o.IntervalP99), o.age(), round(o.Resident), round(o.PerClient))
			}
		}
	}
	return t.String()
}

// Ages and Gaps are the tables of bad links, a column for each.
func (v view) Ages() string {
	return v.links(func(o outcome) string { return o.age() })
}

// Gaps is the table of the longest gaps.
func (v view) Gaps() string { return v.links(func(o outcome) string { return round(o.Gap) }) }

// Packets is the table of bytes in whole IP packets.
func (v view) Packets() string {
	return v.links(func(o outcome) string { return fmt.Sprintf("%.0f + %.0f", o.Packets, o.Up) })
}

func (v view) links(format func(outcome) string) string {
	c := cell{part: path, world: usualWorld, rate: usualRate, clients: pathClients}
	links := slices.DeleteFunc(slices.Clone(fullPlan.links), func(link string) bool {
		c.link = link
		return !v.measured(c)
	})
	if len(links) == 0 {
		return ""
	}
	var t table
	columns := []string{"peer"}
	for _, link := range links {
		columns = append(columns, linkTitle(link))
	}
	t.head(columns...)
	for _, c.peer = range peers {
		columns = []string{c.peer.title}
		for _, c.link = range links {
			columns = append(columns, v.figure(c, format))
		}
		t.row(columns...)
	}
	return t.String()
}

// linkTitle is a link as a column's title: "60 ms, 1 %".
func linkTitle(link string) string {
	link = strings.TrimPrefix(link, "rtt=")
	rtt, loss, _ := strings.Cut(link, ",loss=")
	return strings.Replace(rtt, "ms", " ms", 1) + ", " + strings.Replace(cmp.Or(loss, "0%"), "%", " %", 1)
}

// Narrow is the table of links with a limited rate, whose only user is one client.
func (v view) Narrow() string {
	var t table
	c := cell{part: path, world: usualWorld, rate: usualRate, clients: 1}
	for _, c.link = range fullPlan.narrow {
		if !v.measured(c) {
			continue
		}
		if t.Len() == 0 {
			t.head("peer", "link", "updates/s", "age, ms", "longest gap, ms", "bytes an update")
		}
		_, rate, _ := strings.Cut(c.link, "rate=")
		rate, _, _ = strings.Cut(rate, ",")
		rate = strings.NewReplacer("kbit", " kbit", "Mbit", " Mbit").Replace(rate)
		for _, c.peer = range peers {
			show := func(format func(outcome) string) string { return v.figure(c, format) }
			t.row(c.peer.title, rate, show(func(o outcome) string { return round(o.Rate) }), show(func(o outcome) string { return o.age() }),
				show(func(o outcome) string { return round(o.Gap) }), show(func(o outcome) string { return round(o.Packets) }))
		}
	}
	return t.String()
}

// Stall is the table of a tick of 2 s.
func (v view) Stall() string {
	c := cell{part: stalled, world: usualWorld, rate: usualRate, clients: usualClients}
	if !v.measured(c) {
		return ""
	}
	var t table
	t.head("peer", "longest gap, ms", "updates in the 100 ms after it", "updates missing", "old ticks received", "connections lost")
	for _, c.peer = range peers {
		show := func(format func(outcome) string) string { return v.figure(c, format) }
		t.row(c.peer.title, show(func(o outcome) string { return round(o.Gap) }), show(func(o outcome) string { return fmt.Sprint(o.Burst) }),
			show(func(o outcome) string { return fmt.Sprintf("%.0f", max(o.Window*(usualRate-o.Rate), 0)) }),
			show(func(o outcome) string { return fmt.Sprint(o.Again) }), show(func(o outcome) string { return fmt.Sprint(o.Lost) }))
	}
	return t.String()
}

// Silent is the table of a client that does not run.
func (v view) Silent() string {
	c := silentCell
	if !v.measured(c) {
		return ""
	}
	var t table
	t.head("peer", "updates/s of the worst other client", "its interval p99, ms", "longest gap, ms", "server grows by, MB", "the silent client")
	for _, c.peer = range peers {
		show := func(format func(outcome) string) string { return v.figure(c, format) }
		t.row(c.peer.title, show(func(o outcome) string { return round(o.WorstRate) }), show(func(o outcome) string { return round(o.IntervalP99) }),
			show(func(o outcome) string { return round(o.Gap) }), show(func(o outcome) string { return round(o.Grown) }), show(afterSilence))
	}
	return t.String()
}

// afterSilence describes a client that runs again.
func afterSilence(o outcome) string {
	end := "is closed"
	if o.StillThere {
		end = "stays"
	}
	return fmt.Sprintf("%s; it gets %d updates, up to %.0f s old", end, o.Backlog, o.Oldest/1000)
}

// month is the length of a month in the table of costs.
const month = 30 * 24 * time.Hour

// Cost is the table of the costs of 1 000 players who play all month.
func (v view) Cost() string {
	const players, gigabyte = 1000, 1e9
	var t table
	for _, p := range peers {
		core := cell{part: loopback, world: usualWorld, rate: usualRate, clients: 200, peer: p}
		link := cell{part: path, world: usualWorld, rate: usualRate, clients: pathClients, link: fullPlan.links[0], peer: p}
		cpu, okay := v.Cells[core.key()]
		sent, too := v.Cells[link.key()]
		if !okay || !too {
			continue
		}
		if t.Len() == 0 {
			t.head("peer", "cores", "GB a month", "USD for cores", "USD for traffic", "USD together")
		}
		if cpu.Note != "" || sent.Note != "" {
			t.row(p.title, none, none, none, none, none)
			continue
		}
		cores := cpu.Server * players / float64(core.clients)
		traffic := sent.Packets * usualRate * month.Seconds() * players / gigabyte
		a, b := cores*v.core, traffic*v.gigabyte
		t.row(p.title, round(cores), fmt.Sprintf("%.0f", traffic), fmt.Sprintf("%.0f", a), fmt.Sprintf("%.0f", b), fmt.Sprintf("%.0f", a+b))
	}
	return t.String()
}

// Invalid lists the cells that have no valid figures, and why.
func (v view) Invalid() (all []string) {
	for key, o := range v.Cells {
		if o.Note != "" {
			all = append(all, key+": "+o.Note)
		}
	}
	slices.Sort(all)
	return all
}
