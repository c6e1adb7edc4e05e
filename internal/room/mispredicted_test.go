package room_test

import (
	"fmt"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// count runs the ticks after which the metrics have the counts of the room.
func (b *bare) count() {
	for range 30 {
		b.step()
	}
}

// The number of a client rises with its reports, over all of its connections. Another program of
// the player begins at 0.
func TestReportsOfMispredictionsBelongToAProgram(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	want := func(when string, n uint64, all int) {
		t.Helper()
		line := fmt.Sprintf("netloop_mispredictions_reported_total %d", all)
		w.count()
		if got := w.client().Mispredicted(); got != n || !w.scraped(line) {
			t.Errorf("%s: the client has %d, want %d, and in the metrics %s", when, got, n, line)
		}
	}
	report := func(g *testConn, n uint64) {
		t.Helper()
		w.push(g, transport.Arrival{Kind: transport.Mispredicted, Value: n})
		w.step()
	}
	g, welcome := w.arrive("ann", newcomer())
	want("at first", 0, 0)
	report(g, 7)
	want("after a report", 7, 7)
	report(g, 5)
	want("after a late report", 7, 7)
	g.End(lostLink)
	w.step()
	again, _ := w.arrive("", with(welcome, 0))
	want("after a resume", 7, 7)
	report(again, 7)
	report(again, 9)
	want("over another connection", 9, 9)
	other, _ := w.arrive("ann", newcomer())
	want("of another program", 0, 9)
	report(other, 2)
	want("of another program", 2, 11)
}

// A hostile client may report any number. It is the number of this client alone: one report counts
// as 1 000 for all clients together, and the game runs on.
func TestAHostileReportOfMispredictionsIsBounded(t *testing.T) {
	b := newBareAs(t, netloop.Config{}, func(*netloop.Room) {})
	g, honest := b.join(), b.join()
	for len(b.room.Clients()) < 2 {
		b.step()
	}
	b.push(g, transport.Arrival{Kind: transport.Mispredicted, Value: 1<<53 - 1})
	b.push(honest, transport.Arrival{Kind: transport.Mispredicted, Value: 3})
	b.count()
	all := b.room.Clients()
	if all[0].Mispredicted() != 1<<53-1 || all[1].Mispredicted() != 3 || !all[0].Connected() || !b.scraped("netloop_mispredictions_reported_total 1003") {
		t.Errorf("%d and %d, connected: %v", all[0].Mispredicted(), all[1].Mispredicted(), all[0].Connected())
	}
}
