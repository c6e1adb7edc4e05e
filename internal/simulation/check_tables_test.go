package simulation

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/netloop/netloop/internal/bridge"
)

// tables checks that a server keeps no data of ended clients and rooms. The documents: "Goroutines
// and ownership" in ARCHITECTURE.md, LIMITS.md and METRICS.md.
//
//   - At rest the tables of a room have entries of its present clients alone, no queue has entries,
//     and the gauges of the server and of its game agree with its rooms.
//   - At rest and after the end there are as many goroutines as at the beginning.
type tables struct {
	p          *play
	metrics    prometheus.Collector
	goroutines int
}

// Register implements prometheus.Registerer: a server hands over its metrics.
func (x *tables) Register(c prometheus.Collector) error { x.metrics = c; return nil }

// MustRegister implements prometheus.Registerer.
func (x *tables) MustRegister(...prometheus.Collector) {}

// Unregister implements prometheus.Registerer.
func (x *tables) Unregister(prometheus.Collector) bool { return true }

// begin counts the goroutines of a server without rooms and clients.
func (x *tables) begin() { x.goroutines = len(goroutines()) }

func (x *tables) rest() {
	if x.p.real {
		return // Its tables change meanwhile.
	}
	seats, dropped := 0, 0
	for _, name := range x.p.rooms.names() {
		f := x.p.rooms.byName[name]
		for _, s := range f.in {
			seats++
			if s.dropped {
				dropped++
			}
		}
		x.room(f)
	}
	got := x.gauges()
	want := map[string]float64{"netloop_clients_dropped": float64(dropped), "netloop_strangers": 0}
	if !x.p.rooms.delayed { // Rooms of delayed spectators and their feeds count, and end later.
		want["netloop_rooms"], want["netloop_clients"] = float64(len(x.p.rooms.byName)), float64(seats)
		want["netloop_game_members"] = float64(seats)
	}
	for name, n := range want {
		if got[name] != n {
			x.p.fail("tables", "%s is %v, want %v", name, got[name], n)
		}
	}
	if n := got["netloop_queue_depth"]; n != 0 {
		x.p.fail("tables", "%v messages wait in queues", n)
	}
	x.alive()
}

// room compares the tables of a room with its clients.
func (x *tables) room(f *roomFacts) {
	have := bridge.Netloop.Room(f.gameRoom.room).Stats.Tables()
	clients := len(f.in)
	if f.spec.MaxSpectators > 0 && f.spec.SpectatorDelay > 0 {
		clients++ // the feed
	}
	for name, most := range map[string]int{
		"clients": clients, "peers": clients, "tickets": 0, "secrets": 2 * clients, "players": clients, "sessions": clients, "senders": clients + 1, "accounts": clients,
	} {
		if f.spec.SpectatorDelay > 0 && (name == "players" || name == "secrets" || name == "sessions") {
			continue // The seats of delayed spectators are among them.
		}
		if have[name] > most {
			x.p.fail("tables", "room %q has %d clients, and tables of %v", f.key.name, clients, have)
		}
	}
}

// gauges returns the sums of the server's gauges.
func (x *tables) gauges() map[string]float64 {
	all := map[string]float64{}
	metrics := make(chan prometheus.Metric, 1)
	go func() {
		x.metrics.Collect(metrics)
		close(metrics)
	}()
	for m := range metrics {
		var v dto.Metric
		if err := m.Write(&v); err != nil || v.Gauge == nil {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		all[name] += v.Gauge.GetValue()
	}
	return all
}

// alive looks for goroutines that should have ended.
func (x *tables) alive() {
	x.p.settle()
	if now := goroutines(); len(now) > x.goroutines {
		x.p.fail("tables", "%d goroutines are %d: %s", x.goroutines, len(now), strings.Join(slices.Sorted(maps.Keys(now)), "; "))
	}
}

func (x *tables) over() { x.alive() }

// goroutines returns the functions of the bubble's goroutines, by the first line of their stacks.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	own := string(buf[:runtime.Stack(buf, false)])
	_, bubble, _ := strings.Cut(own[:strings.IndexByte(own, '\n')], "synctest bubble ")
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		head, rest, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest bubble "+strings.TrimSuffix(bubble, "]:")+"]") {
			all[fmt.Sprintf("%s %.80s", head, rest)] = rest
		}
	}
	return all
}
