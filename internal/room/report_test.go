package room_test

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// Every counter of the world reaches its series, under its own reason. What has none is named here.
func TestEveryCounterOfStateIsAMetric(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.step()
	stats := b.room.World().Stats()
	series := map[string]string{
		"Clamped":        `netloop_clamped_values_total`,
		"BelowThreshold": `netloop_held_values_total{reason="threshold"}`,
		"WithinInterval": `netloop_held_values_total{reason="interval"}`,
		"Bytes":          `netloop_snapshot_bytes_total`,
		"Records":        `netloop_snapshot_records_total`,
		"OverBudget":     `netloop_snapshot_records_waited_total{reason="budget"}`,
		"WaitedLarge":    `netloop_snapshot_records_waited_total{reason="stream"}`,
		"Shed":           `netloop_snapshot_records_waited_total{reason="shed"}`,
		"FullFirst":      `netloop_full_states_total{reason="first"}`,
		"FullVisible":    `netloop_full_states_total{reason="became_visible"}`,
		"FullRequested":  `netloop_full_states_total{reason="requested"}`,
		"FullEvicted":    `netloop_full_states_total{reason="evicted"}`,
		"FullLarge":      `netloop_full_states_total{reason="large"}`,
		"FullMasked":     `netloop_full_states_total{reason="mask_changed"}`,
		"FullResumed":    `netloop_full_states_total{reason="resumed"}`,
		"BadPositions":   `netloop_grid_bad_positions_total`,
		"Shown":          `netloop_visibility_changes_total{change="shown"}`,
		"Hidden":         `netloop_visibility_changes_total{change="hidden"}`,
	}
	inside := []string{ // of netvar's own tests and of the game's log, or known from others
		"Objects", "Captured", "Versions", "Encoded", "Snapshots", "Packets", "Deltas", "InRuns", "Despawns", "Large", "Waited", "Ranked",
		"Judged", "Masked", "Acked", "Lost", "Overrun", "AckUnknown", "AckStale", "AckOverlapped",
		"FullRequests", "DigestRequests", "Digests", "DigestSlots", "Hashed", "Resumes",
	}
	known := map[string]bool{}
	for _, name := range inside {
		known[name] = true
	}
	v := reflect.ValueOf(stats).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanUint() {
			v.Field(i).SetUint(uint64(1000 + i))
		}
	}
	stats.Waited = stats.OverBudget + stats.WaitedLarge + 7
	b.room.Report()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch line, ok := series[name]; {
		case ok && known[name], !ok && !known[name]:
			t.Errorf("%s: is it a metric or not?", name)
		case ok && !b.scraped(fmt.Sprintf("%s %d", line, v.Field(i).Uint())):
			t.Errorf("%s is not in %s", name, line)
		}
	}
	if !b.scraped(`netloop_snapshot_records_waited_total{reason="packets"} 7`) {
		t.Error("what waited for its packets is no metric")
	}
}

// lacks fails for each line that a scrape has not.
func (b *bare) lacks(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if !b.scraped(line) {
			b.t.Errorf("the scrape lacks %s", line)
		}
	}
}

// What a room counts besides its state is scraped as it stood at the last report.
func TestEveryCounterOfTheRoomIsAMetric(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { return nil })
	})
	b.join()
	b.join()
	b.step()
	words := &inside.Netloop.Method(bareWords).Queue
	for range 2 {
		b.room.Queue().Push(rpcqueue.Item{Method: words, Stage: loop.Update, Msg: &word{}})
	}
	b.room.Report()
	b.lacks("netloop_clients 2", `netloop_queue_depth{queue="rpc_Update"} 2`, `netloop_queue_depth{queue="rpc_PreUpdate"} 0`,
		`netloop_queue_drops_total{queue="accounts",reason="evicted"} 0`, `netloop_queue_drops_total{queue="penalties",reason="evicted"} 0`)
}

// Messages that wait because those before them have used up the tick are counted.
func TestMessagesThatWaitAreAMetric(t *testing.T) {
	clock := new(handClock)
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { clock.now += time.Second / 60; return nil })
	})
	b.server.UseClock(clock)
	s := b.join()
	for range 4 {
		for range 3 {
			b.push(s, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: idOf(bareWords)}, Decoded: &word{}})
		}
		b.step()
	}
	b.room.Report()
	waited := b.room.Queue().Waited()
	if waited == 0 {
		t.Fatal("nothing waits behind messages that take a tick each")
	}
	b.lacks(fmt.Sprintf("netloop_rpcs_waited_total %d", waited))
}

// What atomics count, of the transport and of the server itself, a scrape reads where it stands.
func TestEveryCounterOfTheServerIsAMetric(t *testing.T) {
	b := newBareAs(t, netloop.Config{LogsDropped: func() uint64 { return 3 }}, func(r *netloop.Room) {
		r.On(netloop.Update, "bad", func(*netloop.Tick) { panic("on purpose") })
	})
	adm, err := b.server.Handler.Admit(t.Context(), hello(bareSchema), "here")
	if err != nil {
		t.Fatal(err)
	}
	stats := adm.Session.Stats
	for i, n := range []*atomic.Uint64{
		&stats.DatagramsIn, &stats.DatagramsOut, &stats.DatagramBytesIn, &stats.DatagramBytesOut,
		&stats.StreamBytesIn, &stats.StreamBytesOut, &stats.Chokes, &stats.Handshakes, &stats.Refused,
	} {
		n.Store(1 << i)
	}
	stats.Disconnect(transport.CodeKicked)
	stats.Drop(transport.DropStale, 17)
	b.lacks(
		`netloop_transport_packets_total{direction="in"} 1`, `netloop_transport_packets_total{direction="out"} 2`,
		`netloop_transport_bytes_total{direction="in"} 20`, `netloop_transport_bytes_total{direction="out"} 40`,
		"netloop_choke_total 64", "netloop_handshakes_total 128", "netloop_refusals_total 256",
		`netloop_disconnects_total{code="kicked"} 1`, `netloop_queue_drops_total{queue="datagram",reason="stale"} 17`,
		"netloop_logs_dropped_total 3", "netloop_hung_ticks_total 0", "netloop_overload_level 0", "netloop_systems_quarantined 0",
	)
	for b.room.Quarantined() == 0 && b.tick < 100 {
		b.step()
	}
	panics := b.tick
	b.tick++
	in := b.room.Timeline().Input(b.tick)
	in.Overload = uint8(overload.Halved)
	if err := b.room.Step(in); err != nil {
		t.Fatal(err)
	}
	b.lacks("netloop_systems_quarantined 1", "netloop_overload_level 1", "netloop_overloaded_ticks_total 1",
		fmt.Sprintf(`netloop_system_panics_total{system="bad"} %d`, panics))
}

// A snapshot that is due and cannot leave is counted under what keeps it.
func TestSnapshotsThatCannotLeaveAreCounted(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	b.step() // the snapshot before still waits for the writer
	if line := `netloop_snapshots_deferred_total{reason="slot_busy"} 1`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
	for range 5 { // the window takes four that nobody acknowledges
		carry(s, nil)
		b.step()
	}
	if line := `netloop_snapshots_deferred_total{reason="window_closed"} 2`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}
