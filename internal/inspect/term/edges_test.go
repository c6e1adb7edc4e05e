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
		if len(lines) != want || !strings.HasPrefix(last[0].text, "▸e") {
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
	client := clientRow{Client: inspect.Client{State: "connected", RTT: 250 * milli, Silent: time.Second, Inputs: 1}, snapshots: 3, deferred: 3, missed: manyMissed}
	if got := warned(clientTable().columns, client); got != nil {
		t.Errorf("of a good client %q is marked", got)
	}
	client = clientRow{Client: inspect.Client{State: "connected", Waits: "slot_busy", RTT: 251 * milli, Silent: 1001 * milli, Inputs: 1, InputMargin: -1}, snapshots: 3, deferred: 4, missed: manyMissed + 0.1}
	if got := warned(clientTable().columns, client); fmt.Sprint(got) != "[state RTT ms silent defer/s missed margin ms]" {
		t.Errorf("of a bad client %q is marked", got)
	}
}

// Numbers change their unit where the smaller unit would have four digits.
func TestNumbersAtTheBoundsOfUnits(t *testing.T) {
	for want, got := range map[string]string{
		"999 ns": span3(999), "1.00 µs": span3(1000), "999 µs": span3(999_499), "1.00 ms": span3(999_500), "999 ms": span3(999_499_999), "1.0 s": span3(999_500_000),
		"9.99": digits(9.994), "10.0": digits(9.996), "99.9": digits(99.94), "100": digits(99.96), "9.9 %": percent(0.099), "10 %": percent(0.0996),
		"1.00 kB": size(1000), "999 kB": size(999.4e3), "1.00 MB": size(999.6e3), "999 MB": size(999.4e6), "1.00 GB": size(999.6e6), "999": rate(999), "1 000": rate(1000), "0": rate(0),
		"42": senderText(slowtick.Record{Facts: slowtick.Facts{Sender: slowtick.Sender{Client: 42}}}), "–": senderText(slowtick.Record{}),
		"10 s": age(10 * time.Second), "1 min 0 s": age(time.Minute), "1 h 0 min": age(time.Hour), "1 d 0 h": age(24 * time.Hour),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
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
