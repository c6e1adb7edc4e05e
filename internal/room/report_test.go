package room_test

import (
	"bytes"
	"fmt"
	"runtime/trace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// lacks fails for each line that a scrape does not contain.
func (b *bare) lacks(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if !b.scraped(line) {
			b.t.Errorf("the scrape lacks %s", line)
		}
	}
}

// A scrape has the room's counters as of the last report.
func TestEveryCounterOfTheRoomIsAMetric(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { return nil })
	})
	b.join()
	b.join()
	b.step()
	words := &bridge.Netloop.Method(bareWords).Queue
	for range 2 {
		b.room.Queue().Push(rpcqueue.Item{Method: words, Stage: loop.Update, Msg: &word{}})
	}
	b.room.World().Stats().Clamped = 9
	b.room.Report()
	b.lacks("netloop_clients 2", "netloop_clamped_values_total 9", `netloop_replication_bytes_total{class="(despawned)"} 0`, `netloop_queue_depth{queue="rpc_Update"} 2`, `netloop_queue_depth{queue="rpc_PreUpdate"} 0`,
		`netloop_queue_drops_total{queue="accounts",reason="evicted"} 0`, `netloop_queue_drops_total{queue="penalties",reason="evicted"} 0`)
}

// Messages that wait because others have used up the tick are counted.
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

// A scrape reads the atomic counters of the transport and the server directly.
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
		&stats.StreamBytesIn, &stats.StreamBytesOut, &stats.Chokes, &stats.Handshakes[transport.WebTransport], &stats.Refused, &stats.Retries,
	} {
		n.Store(1 << i)
	}
	stats.Disconnect(transport.CodeKicked)
	stats.Drop(transport.DropStale, 17)
	b.lacks(
		`netloop_transport_packets_total{direction="in"} 1`, `netloop_transport_packets_total{direction="out"} 2`,
		`netloop_transport_bytes_total{direction="in"} 20`, `netloop_transport_bytes_total{direction="out"} 40`,
		"netloop_choke_total 64", `netloop_handshakes_total{transport="webtransport"} 128`, "netloop_refusals_total 256", "netloop_address_validations_total 512",
		`netloop_disconnects_total{code="kicked"} 1`, `netloop_queue_drops_total{queue="datagram",reason="stale"} 17`,
		"netloop_logs_dropped_total 3", "netloop_hung_ticks_total 0", "netloop_overload_level 0", "netloop_systems_quarantined 0",
	)
	for b.room.Faults.Quarantined() == 0 && b.tick < 100 {
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

// A due snapshot that cannot be sent is counted by its reason.
func TestSnapshotsThatCannotLeaveAreCounted(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	b.step() // the snapshot before still waits for the writer
	if line := `netloop_snapshots_deferred_total{reason="slot_busy"} 1`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
	for range 5 { // the window takes four unacknowledged snapshots
		carry(s, nil)
		b.step()
	}
	if line := `netloop_snapshots_deferred_total{reason="window_closed"} 2`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

// The counters of the room's goroutine are reported four times a second, and from the first tick
// of a slow room on.
func TestTheRoomReportsFourTimesASecond(t *testing.T) {
	for rate, want := range map[netloop.Rate]uint64{netloop.Hz(60): 15, {Num: 30000, Den: 1001}: 7, netloop.Hz(5): 1, netloop.Hz(1): 1} {
		b := newBareAs(t, netloop.Config{Room: netloop.RoomSpec{Rate: rate}}, func(*netloop.Room) {})
		b.join()
		for !b.scraped("netloop_clients 1") && b.tick < 100 {
			b.step()
		}
		if b.tick != want {
			t.Errorf("at %v the first report is that of tick %d, want %d", rate, b.tick, want)
		}
	}
}

// A field without any bytes has no series, also in a class with bytes.
func TestAFieldThatTookNothingHasNoSeries(t *testing.T) {
	type moves struct{ X, Y int32 }
	s := netloop.NewSchema("moves", 1, 0)
	k := netloop.NewClass[moves](s, "moves")
	b := newBareOf(t, netloop.Config{}, oddGame{s, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { k.Spawn(tick, moves{}) })
	}})
	b.step()
	b.room.Report()
	if text := b.scrape(); strings.Contains(text, "netloop_replication_field_bytes_total{") {
		t.Error(text)
	}
	b.lacks(`netloop_replication_bytes_total{class="moves"} 0`)
}

// A client's unused budget accumulates for four ticks, or for two snapshots of a room that sends
// rarely; without a budget of its own the room's holds.
func TestABudgetIsSavedUpForTwoSnapshots(t *testing.T) {
	for every, ticks := range map[int]int{1: 4, 2: 4, 3: 6, 60: 120} {
		b := newBareAs(t, netloop.Config{Room: netloop.RoomSpec{SendEvery: every, Budget: 700}}, func(*netloop.Room) {})
		b.join()
		b.step()
		c := b.room.Clients()[0]
		for asked, want := range map[int]int{-1: 700, 0: 700, 1: 1, 5: 5, netvar.MaxBudget + 1: netvar.MaxBudget} {
			c.SetBudget(asked)
			if got := c.Peer().Budget(); got != (netvar.Budget{PerTick: want, Burst: ticks * want}) {
				t.Errorf("a snapshot every %d ticks, budget %d: %+v", every, asked, got)
			}
		}
	}
}

// An execution trace shows the number of each tick.
func TestATraceNamesItsTicks(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.tick = 918272
	var file bytes.Buffer
	if err := trace.Start(&file); err != nil {
		t.Fatal(err)
	}
	b.step()
	trace.Stop()
	if !bytes.Contains(file.Bytes(), []byte("918273")) {
		t.Errorf("%d bytes of a trace do not name tick 918273", file.Len())
	}
}

// A recorded tick has the numbers of messages that wait after it.
func TestARecordedTickHasItsQueues(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { return nil })
	})
	b.step()
	words := &bridge.Netloop.Method(bareWords).Queue
	for range 3 {
		b.room.Queue().Push(rpcqueue.Item{Method: words, Stage: loop.Update, Msg: &word{}})
	}
	b.room.Observe(&loop.Record{Tick: 7})
	ticks := b.room.Stats.Slow().Last().Ticks
	if want := [loop.NumStages]int{loop.Update - 1: 3}; len(ticks) != 2 || ticks[1].Queues != want {
		t.Errorf("recorded %+v, want queues %v", ticks, want)
	}
}
