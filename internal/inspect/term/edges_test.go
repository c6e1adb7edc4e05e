package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/slowtick"
)

// A filter loses its last rune by backspace, has at most maxFilter bytes, and is cleared by esc.
func TestTypingAFilter(t *testing.T) {
	long := slices.Repeat([]string{"x"}, maxFilter+3)
	for want, typed := range map[string][]string{
		"we": {"w", "é", "backspace", "e"}, "": {"backspace", "w", "esc"}, "w": {"w", "enter", "2", "1"}, strings.Repeat("x", maxFilter): long,
	} {
		if m, _, _ := after(append(live(), keys(append([]string{"/"}, typed...)...)...)...); m.rooms.filter != want {
			t.Errorf("%q types the filter %q", typed, m.rooms.filter)
		}
	}
}

// Tab shows the next view, and shift+tab the one before.
func TestTabsGoRound(t *testing.T) {
	back := tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	for want, msgs := range map[view][]tea.Msg{overviewView: keys("tab", "tab", "tab"), clientsView: {back}, ticksView: {back, back}} {
		if m, _, _ := after(msgs...); m.view != want {
			t.Errorf("the view is %d, want %d", m.view, want)
		}
	}
}

// Space shows the newest tick again; in another view the selected tick is kept.
func TestSpaceReleasesTheSelectedTick(t *testing.T) {
	if m, _, _ := after(append(live(), keys("2", "left", " ")...)...); m.tick != nil {
		t.Errorf("tick %d is selected", m.tick.Tick)
	}
	if m, _, _ := after(append(live(), keys("2", "left", "3", " ", " ")...)...); m.tick == nil {
		t.Error("a space in another view releases the tick")
	}
	if m, _, _ := after(append(append(live(), keys("2", "enter")...), ticksFrom(1095, 5))...); m.shownTick().Tick != 1094 {
		t.Errorf("tick %d is open, want the newest one when it was opened", m.shownTick().Tick)
	}
}

// A note is shown for some overviews. A restart of the server closes an open tick.
func TestNotesEnd(t *testing.T) {
	m, _, _ := after(note{text: "done"})
	for second := range noteFor {
		if m.note.text != "done" {
			t.Errorf("after %d s the note is gone", second)
		}
		m.take(overviewAt(second))
	}
	if m.note.text != "" {
		t.Error("the note stays")
	}
	restarted := overviewAt(13)
	restarted.Instance = "b"
	if m, _, _ = after(append(append(live(), keys("2", "left", "enter")...), restarted)...); m.open || m.tick != nil {
		t.Error("a tick of the server before is open")
	}
}

// The strip shows the last ticks, or those around a selected earlier one. A step from a tick that
// the strip has lost begins at its end.
func TestTheWindowOfTheStrip(t *testing.T) {
	m, _, _ := after(ticksFrom(1, 100))
	for selected, want := range map[uint64]uint64{0: 81, 5: 1, 50: 40, 80: 70, 81: 81, 100: 81} {
		if m.tick = nil; selected > 0 {
			m.tick = &slowtick.Record{Tick: selected}
		}
		if got := m.window(20); len(got) != 20 || got[0].Tick != want {
			t.Errorf("with tick %d selected %d ticks from %d are shown, want those from %d", selected, len(got), got[0].Tick, want)
		}
	}
	m.tick = &slowtick.Record{Tick: 999}
	if m.stepTick(-1); m.tick.Tick != 100 {
		t.Errorf("a step leads to tick %d", m.tick.Tick)
	}
}

// A table draws its head and as many rows as fit, with the selected one among them.
func TestATableFitsItsHeight(t *testing.T) {
	table := roomTable()
	rows := roomsOf("a", "b", "c", "d", "e").Rooms
	table.chosen = table.key(rows[4])
	for height, want := range map[int]int{0: 2, 1: 2, 2: 2, 3: 3, 9: 6} {
		lines := table.draw(rows, 80, height)
		last := lines[len(lines)-1]
		if len(lines) != want || !strings.HasPrefix(last[0].Text, "▸e") {
			t.Errorf("of the height %d it has %d lines, want %d: %v", height, len(lines), want, last)
		}
	}
}

// warned returns the titles of the cells that a table marks.
func warned[T any](columns []column[T], row T) (titles []string) {
	for _, c := range columns {
		if c.warn != nil && c.warn(row) {
			titles = append(titles, c.title)
		}
	}
	return titles
}

// Tables mark figures above their limits, not at them.
func TestTablesMarkBadFigures(t *testing.T) {
	room := directory.Row{State: "open", Clients: 9, Max: 10, Rate: 50, TickP99: 20 * milli}
	if got := warned(roomTable().columns, room); got != nil {
		t.Errorf("of a good room %q is marked", got)
	}
	room = directory.Row{State: directory.StateHung, Clients: 10, Max: 10, Rate: 50, TickP99: 21 * milli, Overruns: 1}
	if got := warned(roomTable().columns, room); fmt.Sprint(got) != "[state clients tick p99 overruns]" {
		t.Errorf("of a bad room %q is marked", got)
	}
	client := clientRow{Client: inspect.Client{State: "connected", RTT: 250 * milli, Silent: time.Second, Inputs: 1, Loss: new(manyLost)}, snapshots: 3, deferred: 3, missed: manyMissed}
	if got := warned(clientTable().columns, client); got != nil {
		t.Errorf("of a good client %q is marked", got)
	}
	client = clientRow{Client: inspect.Client{State: "connected", Waits: "slot_busy", RTT: 251 * milli, Silent: 1001 * milli, Inputs: 1, InputMargin: -1, Loss: new(0.051)}, snapshots: 3, deferred: 4, missed: manyMissed + 0.1}
	if got := warned(clientTable().columns, client); fmt.Sprint(got) != "[state RTT ms loss silent defer/s missed margin ms]" {
		t.Errorf("of a bad client %q is marked", got)
	}
}

// A tick without a message has no sender.
func TestSenderText(t *testing.T) {
	if got := senderText(slowtick.Record{Facts: slowtick.Facts{Sender: slowtick.Sender{Client: 42}}}) + senderText(slowtick.Record{}); got != "42–" {
		t.Error(got)
	}
}

// The summary has the figures of the shortest window.
func TestTheSummaryIsOfTheShortestWindow(t *testing.T) {
	o := overviewAt(1)
	o.Windows = slices.Clone(o.Windows)
	o.Windows[0].Tick.P99, o.Windows[0].Lateness.P99 = 33*milli, 2*milli
	m, _, _ := after(o)
	if got := m.summary(); !strings.Contains(got, "tick p99 33.0 of 16.7 ms, lateness p99 2.00 ms") {
		t.Error(got)
	}
}

// attempts notes the times of streams. The first stream that opens is the one after some attempts.
type attempts struct {
	scripted
	refused int
	at      []time.Duration
	began   time.Time
}

func (a *attempts) Stream(ctx context.Context, page string, query url.Values) (io.ReadCloser, error) {
	a.at = append(a.at, time.Since(a.began))
	if len(a.at) <= a.refused {
		return nil, errors.New("refused")
	}
	return a.scripted.Stream(ctx, page, query)
}

// Pauses double up to their limit, and begin again after a stream that has opened. A stream asks
// for the counters of the overview.
func TestPausesBeginAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &attempts{scripted: scripted{streams: []string{tickOne, tickOne}}, refused: 5, began: time.Now()}
		fed(t, s, 10*time.Second, nil)
		want := []time.Duration{0, 250 * milli, 750 * milli, 1750 * milli, 3750 * milli, 5750 * milli, 6000 * milli}
		if !slices.Equal(s.at, want) {
			t.Errorf("attempts at %v, want %v", s.at, want)
		}
		if got := s.queries[0]["prefix"]; !slices.Equal(got, []string{"clients", "transport_bytes"}) {
			t.Errorf("it asks for %q", got)
		}
	})
}

// answers are the answers of pages; the others are refused.
type answers map[string]string

func (answers) Now() time.Duration { return 0 }

func (answers) Stream(context.Context, string, url.Values) (io.ReadCloser, error) {
	return nil, io.ErrClosedPipe
}

func (a answers) Ask(_ context.Context, _, page string, _ url.Values) ([]byte, error) {
	if text, ok := a[page]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("there is no page " + page)
}

// A server is checked for the room's ticks and for an overview of this version.
func TestAServerIsChecked(t *testing.T) {
	const overview = `{"budget_ns":1,"windows":[{},{},{}]}`
	for want, s := range map[string]answers{
		"<nil>": {"ticks": "", "api/overview": overview}, "there is no page ticks": {"api/overview": overview},
		"there is no page api/overview": {"ticks": ""}, "it has no windows": {"ticks": "", "api/overview": "{}"},
	} {
		if err := Check(t.Context(), s, "lobby"); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Some keys undo others.
func TestKeysThatUndoOthers(t *testing.T) {
	for long, short := range map[string]string{
		"2 j enter esc": "2 j", "3 j enter esc": "3 j", "/ w enter esc": "", "/ w esc": "", "3 j pgdown": "3 j j j", "3 j pgdown pgup": "3 j", "r r": "", "right left": "",
		"2 left left right": "2 left", "2 left esc": "2", "2 j enter j k": "2 j enter", "2 j enter k": "2 j enter", "3 j enter j k": "3 j enter",
		"3 j x n": "3 j", "3 j x esc": "3 j", "3 j x q": "3 j", "tab tab tab": "", "1": "", "2 / s esc": "2", "2 j enter / esc": "2 j", "2 j j up": "2 j", "j k k": "j", "3 z": "3",
	} {
		a, _, _ := after(append(live(), keys(strings.Fields(long)...)...)...)
		b, _, _ := after(append(live(), keys(strings.Fields(short)...)...)...)
		if x, y := a.screen(), b.screen(); x != y {
			t.Errorf("%q leads to\n%s\nand %q to\n%s", long, x, short, y)
		}
	}
}

// The slowest ticks are asked for at the begin, and every five seconds while ticks are shown.
func TestTheSlowestTicksAreAskedForAgain(t *testing.T) {
	for shown, want := range map[string]int{"1": 0, "2": 3} {
		msgs := append(live(), keys(shown)...)
		for second := range 14 {
			msgs = append(msgs, overviewAt(20+second))
		}
		if _, did, _ := after(msgs...); len(did) != want {
			t.Errorf("in view %s: %q", shown, did)
		}
	}
	r := &recorded{}
	if newModel("a", r).Init()(); fmt.Sprint(r.all) != `[worst "a"]` {
		t.Errorf("at the begin: %q", r.all)
	}
}

// Another room begins without the data of the room before.
func TestAnotherRoomBeginsEmpty(t *testing.T) {
	more := clientsAt(13)
	more.More = 5
	m, _, _ := after(append(append(live(), more), keys("2", "j", "enter", "3", " ", "j", "enter", "1", "j", "j")...)...)
	if !m.held[ticksView] || !m.held[clientsView] || m.tick == nil || m.more != 5 {
		t.Fatal("the room before has no data")
	}
	m.Update(keys("enter")[0])
	if m.view != ticksView || m.open || m.held != [numViews]bool{} || m.ticks != nil || m.tick != nil || m.slowest != nil || m.allClients != nil || m.more != 0 {
		t.Errorf("%+v", m)
	}
	// So does another server.
	m, _, _ = after(append(append(live(), more), keys("2", "j", "enter", "3", " ")...)...)
	restarted := overviewAt(13)
	restarted.Instance = "b"
	m.take(restarted)
	if m.open || m.held != [numViews]bool{} || m.ticks != nil || m.tick != nil || m.slowest != nil || m.allClients != nil || m.collect != "–" {
		t.Errorf("%+v", m)
	}
}

// A held overview keeps its figures.
func TestAHeldOverviewKeepsItsFigures(t *testing.T) {
	m, _, _ := after(append(append(live(), keys(" ")...), overviewAt(20), valuesAt(20), roomsOf("x"))...)
	if m.overview.Time.Unix() != 1.8e9+12 || len(m.allRooms) != 2 || m.traffic.at != 12*time.Second {
		t.Errorf("overview of %v, %d rooms, traffic of %v", m.overview.Time, len(m.allRooms), m.traffic.at)
	}
}

// Traffic is the difference of two counts, none after the first one, and none if a count falls.
func TestTrafficIsADifference(t *testing.T) {
	var f traffic
	for i, c := range []struct {
		second         int
		sent, received float64
	}{{1, 0, 0}, {3, 90e3, 12e3}, {2, 0, 0}, {2, 0, 0}} {
		at := time.Duration(1+2*min(i, 2)) * time.Second // The last count is of the same time.
		if f.take(valuesAt(c.second).values, at); f.sent != c.sent || f.received != c.received || f.clients != 3 || f.lost != 1 {
			t.Errorf("count %d: %+v", i, f)
		}
	}
}

// Charts have the last 300 values.
func TestChartsAreBounded(t *testing.T) {
	var all trends
	var one clientTrends
	for n := range 301 {
		all.add(&inspect.Overview{Windows: overviewAt(n).Windows}, &traffic{clients: float64(n), sent: float64(2 * n)})
		one.add(&clientRow{Client: inspect.Client{RTT: time.Duration(n)}, sent: float64(n), snapshots: float64(n), deferred: float64(n)})
	}
	for _, values := range [][]float64{all.tick, all.late, all.clients, all.sent, one.rtt, one.sent, one.snapshots, one.deferred} {
		if len(values) != 300 {
			t.Errorf("%d values", len(values))
		}
	}
	if all.clients[0] != 1 || all.sent[299] != 600 || one.rtt[0] != 1 || one.deferred[299] != 300 {
		t.Error("they are not the last ones")
	}
}

// Each column of a table has an order of its own.
func TestColumnsHaveAnOrder(t *testing.T) {
	inOrder(t, roomTable().columns, directory.Row{}, directory.Row{Name: "a", Kind: "a", State: "a", Clients: 1, Max: 1, Rate: 1, TickP99: 1, LateP99: 1, Overruns: 1, Age: 1})
	inOrder(t, slowTable().columns, slowtick.Record{}, slowtick.Record{Tick: 1, Duration: 1, Lateness: 1, Cause: "a", Blame: slowtick.System{Name: "a"}, Facts: slowtick.Facts{Sender: slowtick.Sender{Client: 1}}})
	inOrder(t, clientTable().columns, clientRow{}, clientRow{Client: inspect.Client{Client: 1, Subject: "a", Addr: "a", Transport: "a", State: "a", RTT: 1, Loss: new(0.0), InFlight: 1, Silent: 1, InputMargin: 1, Age: 1}, sent: 1, snapshots: 1, deferred: 1, missed: 1})
}

func inOrder[T any](t *testing.T, columns []column[T], less, more T) {
	for _, c := range columns {
		if c.order(less, more) >= 0 || c.order(more, less) <= 0 || c.order(less, less) != 0 {
			t.Errorf("%s has no order", c.title)
		}
	}
}

// A client without inputs has no figures about them.
func TestClientsWithoutInputs(t *testing.T) {
	for want, c := range map[string]inspect.Client{"– –": {}, "0 –": {InputsMissed: 1}, "0 12.0": {Inputs: 1, InputsMissed: 1, InputMargin: 12 * milli}} {
		if got := missed(clientRow{Client: c}) + " " + margin(clientRow{Client: c}); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// Columns are left out on narrow screens, in the order of their ranks.
func TestNarrowTablesLeaveOutColumns(t *testing.T) {
	rooms, slow := roomTable(), slowTable()
	for width, want := range map[int][2]int{87: {9, 6}, 86: {8, 6}, 57: {6, 6}, 53: {5, 5}, 40: {4, 4}, 17: {1, 2}, 1: {0, 0}} {
		if a, b := rooms.visible(width), slow.visible(width); len(a) != want[0] || len(b) != want[1] {
			t.Errorf("of %d columns %d and %d are visible: %v, %v", width, len(a), len(b), a, b)
		}
	}
}

// Failed requests are told once.
func TestFailedRequests(t *testing.T) {
	f := &feed{server: answers{"ticks/slow": "no JSON"}}
	if got := f.worst(t.Context(), ""); got != nil {
		t.Errorf("%v", got)
	}
	if got := f.kick(t.Context(), "", 3); got != (note{"there is no page api/clients/kick", true}) {
		t.Errorf("%v", got)
	}
	if v := (newModel("", nil)).View(); !v.AltScreen || v.WindowTitle == "" {
		t.Errorf("%+v", v)
	}
	o := overviewAt(1)
	o.Ready = "it is full"
	if m, _, _ := after(o); !strings.HasSuffix(m.summary(), ", refuses clients: it is full") {
		t.Error(m.summary())
	}
}
