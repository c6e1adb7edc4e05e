package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// The counts of rooms are added up, by their kind if a series has one. When a room ends, its counts
// are kept, its shares of gauges are subtracted, and no other state remains.
func TestRoomsAreAddedUp(t *testing.T) {
	m, _ := newMetrics(t)
	m.Account.Close("closed") // The account of every test.
	room, _ := newServer()
	a, b, c := m.Open("table"), m.Open("table"), m.Open("lobby")
	for range 3 { // Reports replace each other.
		a.Report(room)
		b.Report(room)
		c.Report(room)
	}
	expect(t, scrape(t, m), "netloop_snapshot_records_total 33", "netloop_clients 300", "netloop_clients_dropped 21",
		`netloop_room_clients{kind="table"} 200`, `netloop_room_clients{kind="lobby"} 100`,
		`netloop_rooms{kind="table"} 2`, `netloop_rooms{kind="lobby"} 1`, `netloop_rooms{kind=""} 0`,
		`netloop_queue_depth{queue="rpc_Update"} 9`, `netloop_rpcs_total{method="arena.Chat",outcome="late",stage="Update"} 15`)
	room.state.Records = 20
	a.Report(room)
	a.Sleep(true)
	a.Close(transport.CodeClosing.Name())
	a.Close("again")
	a.Report(room) // A room that was given up may resume, and fall asleep.
	a.Sleep(true)
	b.Close(transport.CodeGame.Name())
	text := scrape(t, m)
	expect(t, text, "netloop_snapshot_records_total 42", "netloop_clients 100", "netloop_clients_dropped 7",
		`netloop_room_clients{kind="table"} 0`, `netloop_rooms{kind="table"} 0`, `netloop_rooms_opened_total{kind="table"} 2`,
		`netloop_rooms_ended_total{code="the server is closing",kind="table"} 1`, `netloop_rooms_ended_total{code="game",kind="table"} 1`,
		`netloop_queue_depth{queue="rpc_Update"} 3`, `netloop_rooms_asleep{kind="table"} 0`)
	if strings.Contains(text, `code="again"`) {
		t.Error("a room is counted as ended twice")
	}
	if n := len(m.accounts); n != 1 {
		t.Errorf("%d accounts remain", n)
	}
}

// Ticks are counted by room, by kind, and all together.
func TestTicksAreCountedByRoomAndByKind(t *testing.T) {
	m, clock := newMetrics(t)
	tables, nameless := m.Open("table"), m.Open("")
	play(m, clock, 1, 10)
	for n := uint64(1); n <= 100; n++ {
		rec := record(n)
		rec.Start = rec.Deadline + 8*time.Millisecond
		if rec.Duration, rec.Dropped = time.Millisecond, 0; n > 95 {
			rec.Duration, rec.Dropped = time.Second, 1
		}
		tables.ObserveTick(rec, budget)
	}
	nameless.ObserveTick(record(1), record(1).Duration) // It takes exactly its budget: no overrun.
	if f := nameless.Figures(); f.Overruns != 0 {
		t.Errorf("a tick of exactly its budget counts as an overrun: %+v", f)
	}
	nameless.ObserveTick(record(1), 2*budget)
	expect(t, scrape(t, m), "netloop_ticks_total 112", "netloop_tick_overruns_total 5", "netloop_dropped_ticks_total 5",
		"netloop_tick_duration_seconds_count 112", `netloop_room_tick_duration_seconds_count{kind="table"} 100`,
		`netloop_room_tick_lateness_seconds_bucket{kind="table",le="0.008"} 100`)
	f := tables.Figures()
	if f.Ticks != 100 || f.Overruns != 5 || f.Dropped != 5 {
		t.Errorf("the room has %+v", f)
	}
	within := func(what string, got, want time.Duration) {
		if got < want || got > want*6/5 {
			t.Errorf("%s is %v, want %v or up to a fifth more", what, got, want)
		}
	}
	within("the median", f.P50, time.Millisecond)
	within("p99", f.P99, time.Second)
	within("p99 of the lateness", f.LateP99, 8*time.Millisecond)
	if since, period := nameless.Progress(); since == 0 || period != 2*budget {
		t.Errorf("progress %v, %v", since, period)
	}
	nameless.Sleep(true)
	if since, period := nameless.Progress(); since != 0 || period != 2*budget {
		t.Errorf("asleep: progress %v, %v", since, period)
	}
	expect(t, scrape(t, m), `netloop_rooms_asleep{kind=""} 1`)
	nameless.Sleep(false)
	expect(t, scrape(t, m), `netloop_rooms_asleep{kind=""} 0`)
	if got := m.Ticks().Budget; got != budget {
		t.Errorf("the budget of all is %v, want that of the first room", got)
	}
}

// Every duration counts in a bucket with an edge at or slightly above it.
func TestSpreadsRoundUp(t *testing.T) {
	for d := time.Microsecond; d < 50*time.Second; d = d*9/8 + time.Microsecond {
		var s spread
		if observe(s[:], d); quantile(s[:], 1) < d.Truncate(time.Microsecond) || quantile(s[:], 1) > d*6/5 {
			t.Errorf("%v counts as %v", d, quantile(s[:], 1))
		}
	}
	var s spread
	if quantile(s[:], .5) != 0 {
		t.Error("an empty spread has a median")
	}
	observe(s[:], -time.Second)
	observe(s[:], time.Hour)
	if quantile(s[:], .5) != time.Microsecond || quantile(s[:], 1) < 50*time.Second || quantile(s[:], 1) > time.Minute {
		t.Errorf("out of range: %v and %v", quantile(s[:], .5), quantile(s[:], 1))
	}
}

// Kinds are set by a game's code, so their series are bounded.
func TestKindsAreBounded(t *testing.T) {
	m, _ := newMetrics(t)
	for i := range 2 * maxKinds {
		m.Open(fmt.Sprint("kind ", i))
		m.Open(fmt.Sprint("kind ", i))
	}
	m.Open("\xff")
	text := scrape(t, m)
	expect(t, text, `netloop_rooms{kind="kind 0"} 2`, fmt.Sprintf(`netloop_rooms{kind="other"} %d`, 2*maxKinds+1), `netloop_rooms{kind=""} 1`)
	if n := strings.Count(text, "\nnetloop_rooms{"); n != maxKinds+2 {
		t.Errorf("%d series", n)
	}
}

// The least margin is that of all rooms, the median that of the median room; rooms without inputs
// do not count.
func TestInputMarginsOfRooms(t *testing.T) {
	m, _ := newMetrics(t)
	if text := scrape(t, m); strings.Contains(text, "netloop_input_margin_seconds{") {
		t.Error("a game without inputs has margins")
	}
	quiet := m.Open("")
	quiet.SetInputMargins(0, 0, false)
	expect(t, scrape(t, m), `netloop_input_margin_seconds{kind="least"} 0`, `netloop_input_margin_seconds{kind="median"} 0`)
	for _, ms := range [][2]int{{25, 30}, {5, 11}, {15, 22}, {35, 40}, {45, 50}} {
		m.Open("").SetInputMargins(time.Duration(ms[0])*time.Millisecond, time.Duration(ms[1])*time.Millisecond, true)
	}
	expect(t, scrape(t, m), `netloop_input_margin_seconds{kind="least"} 0.005`, `netloop_input_margin_seconds{kind="median"} 0.03`)
}
