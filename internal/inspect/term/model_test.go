package term

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/testing/golden"
)

const (
	milli  = time.Millisecond
	budget = time.Second / 60
)

// recorded notes the effects of keys.
type recorded struct{ all []string }

func (r *recorded) add(format string, a ...any) { r.all = append(r.all, fmt.Sprintf(format, a...)) }

func (r *recorded) follow(room string) { r.add("follow %q", room) }

func (r *recorded) worst(room string) tea.Msg {
	r.add("worst %q", room)
	return worstEvent{slowtick.Report{Budget: budget, Ticks: []slowtick.Record{tickOf(1040), tickOf(1020), tickOf(1060)}}}
}

func (r *recorded) kick(room string, client uint64) tea.Msg {
	r.add("kick %d of %q", client, room)
	return note{text: fmt.Sprintf("client %d is removed", client)}
}

// hostile is a text that would clear a screen and reorder text.
const hostile = "eve\x1b[2J\u202e\n"

func overviewAt(second int) overviewEvent {
	w := metrics.Window{Ticks: 3600, Overruns: 2, Dropped: 1}
	w.Tick = metrics.Quantiles{P50: 1200 * time.Microsecond, P95: 3 * milli, P99: time.Duration(4+second%3) * milli, Max: 1250 * milli}
	w.Lateness = metrics.Quantiles{P50: 60 * time.Microsecond, P95: 200 * time.Microsecond, P99: time.Duration(300+50*(second%5)) * time.Microsecond, Max: 21 * milli}
	return overviewEvent{time.Duration(second) * time.Second, inspect.Overview{
		Game: "arena", Version: "v1.2.3", Instance: "a", Time: time.Unix(1.8e9+int64(second), 0), Uptime: 3700, Budget: budget, Rate: 59.98,
		Windows: []metrics.Window{w, w, w}, Overload: "normal", Rooms: 2,
		Memory: inspect.Memory{Heap: 21_400_000, Total: 54e6, Goroutines: 320, Cycles: 14, GC: 1 + float64(second)/50, CPU: 100 + 2*float64(second)},
	}}
}

func valuesAt(second int) valuesEvent {
	v := func(x float64, labels ...string) metrics.Value { return metrics.Value{Labels: labels, Value: x} }
	return valuesEvent{time.Duration(second) * time.Second, map[string][]metrics.Value{
		"clients": {v(3, "")}, "clients_dropped": {v(1, "")},
		"transport_bytes_total": {v(90e3*float64(second), "out", "datagram"), v(100, "out", "stream"), v(12e3*float64(second), "in", "datagram")},
	}}
}

func clientsAt(second int) clientsEvent {
	list := make([]inspect.Client, 3)
	for i := range list {
		n := uint64(i + 1)
		list[i] = inspect.Client{
			Client: n, Subject: []string{"ann", "bob", hostile}[i], Addr: fmt.Sprintf("192.0.2.%d:4000", n), Transport: []string{"quic", "websocket", "webtransport"}[i], State: "connected",
			Age: time.Duration(second) * time.Second, Silent: 16 * milli, RTT: time.Duration(40*(3-n)+2) * milli, InFlight: i, Window: 4,
			Snapshots: 60 * n * uint64(second), Bytes: 5000 * n * uint64(second), Inputs: 3000, InputsMissed: uint64(second) * uint64(i), InputMargin: 12 * milli, Rewind: 100 * milli,
			Loss: new(float64(n-1) / 50), AckAge: new(20 * milli), Sent: 6000 * n * uint64(second), Received: 900 * n * uint64(second),
		}
	}
	list[1].Waits, list[1].WindowClosed = "window_closed", 100*uint64(second)
	list[1].QueuedBytes, list[1].QueuedMessages, list[1].Waiting = 2000, 3, 1
	list[2].State = "dropped"
	return clientsEvent{time.Duration(second) * time.Second, inspect.Clients{Tick: 60 * uint64(second), Clients: list}}
}

// tickOf returns a tick; each twentieth is slow, with another cause each time.
func tickOf(n uint64) slowtick.Record {
	t := slowtick.Record{Tick: n, Start: time.Duration(n) * budget, Duration: time.Duration(2000+n%7*300) * time.Microsecond, Lateness: 90 * time.Microsecond, FixedSteps: 1}
	t.Facts = slowtick.Facts{Clients: 3, Arrivals: 5}
	if n%20 == 0 {
		t.Cause = []slowtick.Cause{slowtick.CauseSystem, slowtick.CauseStage, slowtick.CauseGC, slowtick.CauseBehind, slowtick.CauseHost}[n/20%5]
		t.Duration += time.Duration(n/20%5) * 12 * milli
		t.Lateness = 9 * milli
		t.GC = slowtick.GC{Cycles: 1, CPU: 12 * milli, Pauses: 100 * time.Microsecond}
		t.Sender = slowtick.Sender{Client: 2, Method: "shoot" + hostile, Cost: t.Duration / 3}
	}
	part := t.Duration / 10
	t.Systems = []slowtick.System{{Name: "transport.poll", Stage: "EarlyUpdate", Cost: part, Runs: 1}, {Name: "arena.shots", Stage: "FixedUpdate", Cost: 5 * part, Runs: 2}, {Name: "netvar.snapshot", Stage: "PreLateUpdate", Cost: 3 * part, Runs: 1}}
	t.Stages[1], t.Stages[2], t.Stages[5] = part, 5*part, 3*part
	t.Blame = t.Systems[1]
	t.Others = slowtick.Others{Systems: 4, Cost: part / 2}
	return t
}

func ticksFrom(first, n uint64) ticksEvent {
	r := slowtick.Report{Budget: budget}
	for i := range n {
		r.Ticks = append(r.Ticks, tickOf(first+i))
	}
	return ticksEvent{r}
}

func roomsOf(names ...string) roomsEvent {
	p := directory.Page{Total: len(names)}
	for i, n := range names {
		p.Rooms = append(p.Rooms, directory.Row{Name: n, Kind: "table", State: "open", Clients: 3 - i, Max: 256, Rate: 60, TickP99: 5 * milli, LateP99: 300 * time.Microsecond, Overruns: uint64(i), Age: time.Hour})
	}
	return roomsEvent{p}
}

// live is a server of two rooms after twelve seconds.
func live() []tea.Msg {
	all := []tea.Msg{link{"live", true}, roomsOf("", "lobby"+hostile), ticksFrom(1000, 95)}
	for second := 1; second <= 12; second++ {
		all = append(all, valuesAt(second), overviewAt(second), clientsAt(second))
	}
	return all
}

// keys makes key messages of letters, and of the names of other keys.
func keys(names ...string) (all []tea.Msg) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace, "tab": tea.KeyTab, "pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp}
	for _, name := range names {
		k := tea.KeyPressMsg{Code: codes[name]}
		switch {
		case name == "ctrl+c":
			k = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		case k.Code == 0:
			k = tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		}
		all = append(all, k)
	}
	return all
}

// after returns the model after messages, the effects, and whether it has quit. Effects answer at
// once.
func after(msgs ...tea.Msg) (m *model, did []string, quit bool) {
	r := &recorded{}
	m = newModel("", r)
	for len(msgs) > 0 {
		_, do := m.Update(msgs[0])
		msgs = msgs[1:]
		if do == nil {
			continue
		}
		if msg := do(); msg == tea.Quit() {
			quit = true
		} else {
			msgs = append([]tea.Msg{msg}, msgs...)
		}
	}
	return m, r.all, quit
}

// Every screen fits its terminal, is readable without colors, shows no control character of a
// client's text, and equals its file in testdata. The file styles has the colors of all screens.
func TestScreens(t *testing.T) {
	styled := map[string]string{}
	full := overviewAt(13)
	full.Overload, full.Ready = "refusing", "the server is overloaded"
	full.Ladder = inspect.Ladder{Room: "red", Text: "Refusing for 4s: no newcomers. Cause: tick time 97 % of the period."}
	full.Windows = slices.Clone(full.Windows)
	full.Windows[0].Tick.P99, full.Windows[1].Tick.P99 = 40*milli, 30*milli
	least := tea.WindowSizeMsg{Width: minWidth, Height: minHeight}
	warm := overviewAt(13)
	warm.Rooms, warm.Note, warm.Windows = 1, "draining", slices.Clone(warm.Windows)
	warm.Windows[0].Tick.P99, warm.Windows[1].Tick.P99 = 10*milli, 10*milli
	idle := clientsEvent{13 * time.Second, inspect.Clients{Tick: 780, Clients: []inspect.Client{{Client: 9, State: "connected"}}, More: 5}}
	odd := ticksFrom(1095, 3)
	odd.Ticks[2].Cause, odd.Ticks[2].Dropped, odd.Ticks[2].Queues[1], odd.Ticks[2].Queues[3] = "odd", 3, 4, 5
	restarted := overviewAt(14)
	restarted.Instance = "b"
	for name, c := range map[string]struct {
		msgs []tea.Msg
		keys []string
	}{
		"connecting":     {nil, nil},
		"overview":       {live(), nil},
		"overview-bad":   {append(live(), full), nil},
		"overview-warm":  {append(live(), valuesEvent{}, warm), nil},
		"overview-empty": {append(live(), roomsEvent{}), []string{"j", "enter"}},
		"ticks-none":     {[]tea.Msg{link{"live", true}, overviewAt(1)}, []string{"2", "left", "enter"}},
		"ticks-even":     {[]tea.Msg{link{"live", true}, overviewAt(1), ticksFrom(1, 19)}, []string{"2"}},
		"overview-rooms": {append(live(), roomsOf(strings.Split("abcdefghijklmnopqrstuvwxyz", "")...)), []string{"pgdown", "pgdown", "pgdown"}},
		"ticks-odd":      {append(live(), odd), []string{"2"}},
		"client-idle":    {append(live(), idle), []string{"3", "j", "enter"}},
		"clients-more":   {append(live(), idle), []string{"3", "j", "x"}},
		"note-wrong":     {append(live(), note{"it failed", true}), nil},
		"overview-room":  {live(), []string{"j", "j"}},
		"restarted":      {append(live(), restarted), []string{"2"}},
		"offline":        {append(live(), link{text: "the server does not answer: trying again"}), nil},
		"ticks":          {live(), []string{"2"}},
		"ticks-chosen":   {live(), []string{"tab", "left", "left"}},
		"ticks-slowest":  {live(), []string{"2", "down", "down"}},
		"ticks-filter":   {live(), []string{"2", "/", "s", "t"}},
		"tick":           {live(), []string{"2", "j", "enter"}},
		"tick-scrolled":  {append(live(), tea.WindowSizeMsg{Width: 80, Height: 20}), []string{"2", "j", "enter", "j", "j", "j", "j", "j", "j"}},
		"clients":        {live(), []string{"3"}},
		"clients-sorted": {live(), []string{"3", "right", "right", "right", "j", "j"}},
		"clients-filter": {live(), []string{"3", "/", "w", "e", "b", "enter"}},
		"clients-none":   {append(live(), clientsEvent{}), []string{"3"}},
		"client":         {append(append(append(live(), keys("3", "j", "j", "enter")...), clientsAt(13), clientsAt(14)), link{"live", true}), nil},
		"client-gone":    {append(append(live(), keys("3", "j", "enter")...), clientsEvent{}), nil},
		"kick":           {live(), []string{"3", "j", "j", "j", "x"}},
		"kicked":         {live(), []string{"3", "j", "j", "x", "y"}},
		"least-overview": {append(live(), least), nil},
		"least-ticks":    {append(live(), least), []string{"2", "j"}},
		"least-clients":  {append(live(), least), []string{"3", "j"}},
		"least-client":   {append(live(), least), []string{"3", "j", "enter"}},
		"small":          {append(live(), tea.WindowSizeMsg{Width: 50, Height: 12}), nil},
		"wide-overview":  {append(live(), tea.WindowSizeMsg{Width: 160, Height: 50}), nil},
		"wide-ticks":     {append(live(), tea.WindowSizeMsg{Width: 160, Height: 50}), []string{"2", "left"}},
		"wide-clients":   {append(live(), tea.WindowSizeMsg{Width: 160, Height: 50}), []string{"3", "j"}},
		"wider-overview": {append(live(), tea.WindowSizeMsg{Width: 210, Height: 30}), nil},
	} {
		m, _, _ := after(append(c.msgs, keys(c.keys...)...)...)
		screen := m.screen()
		styled[name] = stylesOf(screen)
		height := m.height
		if name == "small" { // It only asks for a larger terminal.
			height = 0
		}
		golden.Screen(t, "testdata/"+name+".txt", screen, m.width, height)
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(styled)) {
		fmt.Fprintf(&all, "%s\n%s", name, styled[name])
	}
	golden.Check(t, "testdata/styles", all.String())
}

// stylesOf lists the texts of a screen by the parameters of their style, without the soft ones.
func stylesOf(screen string) string {
	const soft = "2"
	texts := map[string][]string{}
	for _, m := range regexp.MustCompile(`\x1b\[([0-9;]+)m(.*?)\x1b\[m`).FindAllStringSubmatch(screen, -1) {
		if t := strings.TrimSpace(m[2]); t != "" && m[1] != soft {
			texts[m[1]] = append(texts[m[1]], t)
		}
	}
	var b strings.Builder
	for _, s := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(&b, "  %-4s %s\n", s, strings.Join(texts[s], " | "))
	}
	return b.String()
}

// A slow tick has the color of its cause, beside the letter.
func TestCausesHaveColors(t *testing.T) {
	m, _, _ := after(append(append(live(), tea.WindowSizeMsg{Width: 160, Height: 40}), keys("2")...)...)
	screen := m.screen()
	for _, c := range causes[1:] {
		if want := c.style.Paint(c.letter); !strings.Contains(screen, want) {
			t.Errorf("no %q on the screen", want)
		}
	}
}

// The effects of keys, on each view.
func TestKeys(t *testing.T) {
	for name, c := range map[string]struct {
		keys []string
		did  []string
		quit bool
	}{
		"quits":                         {keys: []string{"q"}, quit: true},
		"quits while it types":          {keys: []string{"/", "q", "ctrl+c"}, quit: true},
		"asks for the slowest ticks":    {keys: []string{"2"}, did: []string{`worst ""`}},
		"enters a room":                 {keys: []string{"j", "j", "enter"}, did: []string{`follow "lobby` + strings.ReplaceAll(strings.ReplaceAll(hostile, "\x1b", `\x1b`), "\u202e\n", `\u202e\n`) + `"`, `worst "lobby` + `eve\x1b[2J\u202e\n"`}},
		"enters the shown room":         {keys: []string{"j", "enter"}, did: []string{`worst ""`}},
		"kicks after a question":        {keys: []string{"3", "j", "x", "y"}, did: []string{`kick 1 of ""`}},
		"does not kick without yes":     {keys: []string{"3", "j", "x", "n", "x", "esc", "x", "j", "q", "y"}},
		"does not kick without a row":   {keys: []string{"3", "x", "y"}},
		"kicks the followed client":     {keys: []string{"3", "j", "enter", "j", "x", "y"}, did: []string{`kick 2 of ""`}},
		"selects another sorted client": {keys: []string{"3", "r", "j", "x", "y"}, did: []string{`kick 3 of ""`}},
	} {
		_, did, quit := after(append(live(), keys(c.keys...)...)...)
		if !slices.Equal(did, c.did) || quit != c.quit {
			t.Errorf("%s: it did %q, and quit: %v", name, did, quit)
		}
	}
}

// A held view keeps its data until it goes on; the other views continue.
func TestSpaceHoldsAView(t *testing.T) {
	m, _, _ := after(append(append(live(), keys("3", " ")...), clientsAt(20), ticksFrom(1095, 5))...)
	if m.clientTick != 60*12 || len(m.ticks) != 100 {
		t.Errorf("clients at tick %d, %d ticks", m.clientTick, len(m.ticks))
	}
	m, _, _ = after(append(append(live(), keys("3", " ", " ")...), clientsAt(20))...)
	if m.clientTick != 60*20 {
		t.Errorf("clients at tick %d", m.clientTick)
	}
	m, _, _ = after(append(append(live(), keys("2", "left")...), ticksFrom(1095, 5))...)
	if m.tick == nil || m.tick.Tick != 1094 || len(m.ticks) != 95 {
		t.Errorf("a selected tick does not hold the strip: %d ticks", len(m.ticks))
	}
	if m, _, _ = after(append(append(live(), keys("2", "left", "esc")...), ticksFrom(1095, 5))...); m.shownTick().Tick != 1099 {
		t.Errorf("after esc tick %d is shown", m.shownTick().Tick)
	}
}

// The strip keeps as many ticks as the server, and begins again with a new stream.
func TestTicksAreKept(t *testing.T) {
	m, _, _ := after(ticksFrom(1, 500), ticksFrom(501, 500))
	if len(m.ticks) != slowtick.LastTicks || m.ticks[0].Tick != 401 {
		t.Errorf("%d ticks from %d", len(m.ticks), m.ticks[0].Tick)
	}
	m.take(ticksFrom(900, 300))
	if len(m.ticks) != 300 {
		t.Errorf("%d ticks after a new stream", len(m.ticks))
	}
}

// The verdict names the cause, as the page does.
func TestVerdicts(t *testing.T) {
	system := slowtick.System{Name: "ai", Stage: "Update", Cost: 15 * milli}
	for want, r := range map[string]slowtick.Record{
		"took 2.00 ms, on time": {Duration: 2 * milli},
		"took 20.0 ms of 16.7 ms: the system ai took 15.0 ms at Update, above all for spawn of client 7 (9.00 ms)": {Duration: 20 * milli, Cause: slowtick.CauseSystem, Blame: system, Facts: slowtick.Facts{Sender: slowtick.Sender{Client: 7, Method: "spawn", Cost: 9 * milli}}},
		"took 20.0 ms of 16.7 ms: many systems, the longest is ai with 15.0 ms":                                    {Duration: 20 * milli, Cause: slowtick.CauseStage, Blame: system},
		"began 6.00 ms late: the garbage collector used 5.00 ms of CPU time":                                       {Duration: milli, Lateness: 6 * milli, Cause: slowtick.CauseGC, GC: slowtick.GC{CPU: 5 * milli}},
		"began 6.00 ms late, because the tick before had not ended":                                                {Duration: milli, Lateness: 6 * milli, Cause: slowtick.CauseBehind},
		"took 1.5 s of 16.7 ms: the process did not run, no system used that time":                                 {Duration: 1500 * milli, Cause: slowtick.CauseHost},
	} {
		if got := verdict(&r, budget); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// The line for an output that is not a terminal names the slowest tick since the line before.
func TestSummary(t *testing.T) {
	m, _, _ := after(live()...)
	const want = "2027-01-15T08:00:12Z 60.0 Hz, tick p99 4.00 of 16.7 ms, lateness p99 0.40 ms, 3 clients, overload normal, heap 21.4 MB, tick 1080 took 50.6 ms of 16.7 ms: the process did not run, no system used that time"
	if got := m.summary(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := m.summary(); strings.Contains(got, "1080") {
		t.Errorf("%s", got)
	}
}
