package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/tui"
)

// clientRow is a client, with rates per second since the previous answer.
type clientRow struct {
	inspect.Client
	sent, snapshots, deferred, missed float64
}

// takeClients stores a new list of clients and computes their rates.
func (m *model) takeClients(e clientsEvent) {
	was := make(map[uint64]*inspect.Client, len(m.allClients))
	for i := range m.allClients {
		was[m.allClients[i].Client.Client] = &m.allClients[i].Client
	}
	s := (e.at - m.clientsAt).Seconds()
	rows := make([]clientRow, len(e.Clients.Clients))
	for i, c := range e.Clients.Clients {
		rows[i].Client = c
		if b := was[c.Client]; b != nil && s > 0 {
			grown := func(now, before uint64) float64 { return float64(now-min(before, now)) / s }
			rows[i].sent, rows[i].snapshots = grown(c.Bytes, b.Bytes), grown(c.Snapshots, b.Snapshots)
			rows[i].deferred = grown(c.SlotBusy+c.WindowClosed, b.SlotBusy+b.WindowClosed)
			rows[i].missed = grown(c.InputsMissed, b.InputsMissed)
		}
	}
	m.allClients, m.clientsAt, m.clientTick, m.more = rows, e.at, e.Tick, e.More
	if c, ok := m.clients.selected(rows); ok && m.open && m.view == clientsView {
		m.followed.add(&c)
	}
}

// clientTrends are the chart values of the followed client.
type clientTrends struct{ rtt, sent, snapshots, deferred []float64 }

func (t *clientTrends) add(c *clientRow) {
	for _, s := range []struct {
		to *[]float64
		v  float64
	}{{&t.rtt, float64(c.RTT)}, {&t.sent, c.sent}, {&t.snapshots, c.snapshots}, {&t.deferred, c.deferred}} {
		*s.to = append(*s.to, s.v)
		*s.to = (*s.to)[max(0, len(*s.to)-history):]
	}
}

// manyMissed is the number of missed inputs per second above which a client is marked, as in the
// browser's page.
const manyMissed = 1.2

// manyLost is the share of lost packets above which a client is marked, as in the browser's page.
const manyLost = 0.05

// share returns a loss, or -1 if it is not known yet.
func share(loss *float64) float64 {
	if loss == nil {
		return -1
	}
	return *loss
}

func loss(c clientRow) string {
	if c.Loss == nil {
		return "–"
	}
	return strconv.FormatFloat(100**c.Loss, 'f', 1, 64) + " %"
}

func ackAge(c clientRow) string {
	if c.AckAge == nil {
		return "–"
	}
	return tui.Span3(*c.AckAge)
}

// queued names the messages that wait in both directions.
func queued(c clientRow) string {
	if c.QueuedBytes+c.QueuedMessages+c.Waiting == 0 {
		return "–"
	}
	return fmt.Sprintf("%s + %d to it, %d from it", tui.Size(float64(c.QueuedBytes)), c.QueuedMessages, c.Waiting)
}

// clientTable returns the table of clients.
func clientTable() table[clientRow] {
	type row = clientRow
	whole := func(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }
	return table[row]{
		columns: []column[row]{
			{title: "client", width: 7, show: func(c row) string { return strconv.FormatUint(c.Client.Client, 10) }, order: by(func(c row) uint64 { return c.Client.Client })},
			{title: "subject", width: 11, left: true, wide: true, show: func(c row) string { return cmp.Or(c.Subject, "–") }, order: by(func(c row) string { return c.Subject })},
			{title: "address", width: 21, left: true, rank: 3, show: func(c row) string { return c.Addr }, order: by(func(c row) string { return c.Addr })},
			{title: "transport", width: 12, left: true, rank: 2, show: func(c row) string { return c.Transport }, order: by(func(c row) string { return c.Transport })},
			{title: "state", width: 13, left: true, show: func(c row) string { return cmp.Or(c.Waits, c.State) }, order: by(func(c row) string { return c.State + c.Waits }), warn: func(c row) bool { return c.State != "connected" || c.Waits != "" }},
			{title: "RTT ms", width: 7, show: func(c row) string { return tui.Millis(c.RTT) }, order: by(func(c row) time.Duration { return c.RTT }), warn: func(c row) bool { return c.RTT > 250*time.Millisecond }},
			{title: "loss", width: 7, rank: 4, show: loss, order: by(func(c row) float64 { return share(c.Loss) }), warn: func(c row) bool { return share(c.Loss) > manyLost }},
			{title: "in flight", width: 10, rank: 1, show: func(c row) string { return fmt.Sprintf("%d / %d", c.InFlight, c.Window) }, order: by(func(c row) int { return c.InFlight })},
			{title: "silent", width: 8, rank: 2, show: func(c row) string { return tui.Span3(c.Silent) }, order: by(func(c row) time.Duration { return c.Silent }), warn: func(c row) bool { return c.Silent > time.Second }},
			{title: "snap/s", width: 7, show: func(c row) string { return whole(c.snapshots) }, order: by(func(c row) float64 { return c.snapshots })},
			{title: "defer/s", width: 8, show: func(c row) string { return whole(c.deferred) }, order: by(func(c row) float64 { return c.deferred }), warn: func(c row) bool { return c.deferred > c.snapshots }},
			{title: "state/s", width: 8, show: func(c row) string { return tui.Size(c.sent) }, order: by(func(c row) float64 { return c.sent })},
			{title: "missed", width: 7, rank: 2, show: missed, order: by(func(c row) float64 { return c.missed }), warn: func(c row) bool { return c.missed > manyMissed }},
			{title: "margin ms", width: 10, rank: 3, show: margin, order: by(func(c row) time.Duration { return c.InputMargin }), warn: func(c row) bool { return c.Inputs > 0 && c.InputMargin < 0 }},
			{title: "joined", width: 11, rank: 3, show: func(c row) string { return tui.Age(c.Age) }, order: by(func(c row) time.Duration { return c.Age })},
		},
		key: func(c row) string { return strconv.FormatUint(c.Client.Client, 10) },
		find: func(c row) string {
			return fmt.Sprint(c.Client.Client, " ", c.Subject, " ", c.Addr, " ", c.Transport, " ", c.State, " ", c.Waits)
		},
		down: false, empty: "no client is in the room",
	}
}

func missed(c clientRow) string {
	if c.Inputs+c.InputsMissed == 0 {
		return "–"
	}
	return strconv.FormatFloat(c.missed, 'f', 0, 64)
}

func margin(c clientRow) string {
	if c.Inputs == 0 {
		return "–"
	}
	return tui.Millis(c.InputMargin)
}

func (m *model) drawClients(width, height int) []tui.Line {
	if m.open {
		return m.drawClient(width, height)
	}
	all := len(m.allClients) + m.more
	head := fmt.Sprintf(" %s at tick %s", tui.Plural(all, "client"), tui.Count(m.clientTick))
	if m.more > 0 {
		head += fmt.Sprintf(", of which the first %d are listed", len(m.allClients))
	}
	if m.clients.filter != "" {
		head += fmt.Sprintf(", %d pass the filter", len(m.clients.rows(m.allClients)))
	}
	return append([]tui.Line{tui.Text(tui.Soft, head)}, m.clients.draw(m.allClients, width-1, height-1)...)
}

// drawClient draws the followed client.
func (m *model) drawClient(width, height int) []tui.Line {
	c, ok := m.clients.selected(m.allClients)
	if !ok {
		return []tui.Line{tui.Text(tui.Bad, " Client "+m.clients.chosen+" is not in the room")}
	}
	state := c.State
	if c.Waits != "" {
		state += ", no snapshot: " + c.Waits
	}
	lines := []tui.Line{tui.Text(tui.Strong, fmt.Sprintf(" Client %d%s", c.Client.Client, named(c.Subject))), {}}
	half := (width - 1) / 2
	pair := func(facts ...string) {
		l := tui.Line{}
		for i := 0; i < len(facts); i += 2 {
			l = append(l.Fit(i/2*half), tui.Text(tui.Soft, " "+tui.Left(facts[i], 14)).And(tui.Plain, facts[i+1])...)
		}
		lines = append(lines, l)
	}
	pair("address", c.Addr, "transport", c.Transport)
	pair("state", state)
	pair("joined", tui.Age(c.Age)+" ago", "silent, acked", tui.Span3(c.Silent)+", "+ackAge(c))
	pair("in flight", fmt.Sprintf("%d of %d, lost %s", c.InFlight, c.Window, loss(c)), "early, inputs", margin(c)+" ms, "+tui.Count(c.Inputs))
	pair("snapshots", tui.Count(c.Snapshots)+", "+tui.Size(float64(c.Bytes)), "missed, late", tui.Count(c.InputsMissed)+", "+tui.Count(c.InputsLate))
	pair("deferred", tui.Count(c.SlotBusy)+" slot_busy, "+tui.Count(c.WindowClosed)+" window_closed")
	pair("waiting", queued(c), "out, in", tui.Size(float64(c.Sent))+", "+tui.Size(float64(c.Received)))
	pair("looks back", tui.Span3(c.Rewind)+", "+tui.Count(c.ViewsClamped)+" views clamped", "mispredicted", tui.Count(c.Mispredicted)+" reported")
	lines = append(lines, tui.Line{}, tui.Text(tui.Soft, " since it is followed"))
	t, rows := &m.followed, min(max((height-len(lines))/4, 1), 8)
	return slices.Concat(lines,
		tui.Chart("RTT", tui.Millis(c.RTT)+" ms", tui.Accent, t.rtt, width, rows), tui.Chart("state", tui.Size(c.sent)+"/s", tui.Good, t.sent, width, rows),
		tui.Chart("snapshots", tui.Rate(c.snapshots)+"/s", tui.Accent, t.snapshots, width, rows), tui.Chart("deferred", tui.Rate(c.deferred)+"/s", tui.Warm, t.deferred, width, rows))
}
