package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// joinByTickets joins so many clients per second by tickets, in turn to each of a hundred rooms,
// for a second, and returns those that joined.
func joinByTickets(tb testing.TB, perSecond int) []*client.Client {
	const rooms = 100
	w := netlooptest.New(tb, script(func(*netloop.Room) {}), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(50)}))
	for i := range rooms {
		openRoom(tb, w, netloop.RoomSpec{Name: fmt.Sprint(i), Rate: netloop.Hz(20), MaxClients: 10})
	}
	var all []*client.Client
	for tick := range 50 {
		for i := tick * perSecond / 50; i < (tick+1)*perSecond/50; i++ {
			ticket := seats(tb, w, fmt.Sprint(i%rooms), netloop.Reservation{})[0]
			all = append(all, w.JoinAs(client.Config{Ticket: string(ticket)}, netlooptest.Link{Delay: 10 * time.Millisecond}))
		}
		w.Step(1)
	}
	w.Step(25) // Half a second later all of them play.
	return all
}

// Five hundred clients per second join a hundred rooms by tickets, and all of them play half a
// second after the last one.
func TestFiveHundredClientsJoinPerSecondByTicket(t *testing.T) {
	perSecond := 500
	if seeds.Race { // There is one goroutine.
		perSecond = 50
	}
	for i, c := range joinByTickets(t, perSecond) {
		plays(t, fmt.Sprint("client ", i), c, fmt.Sprint(i%100))
	}
}

// BenchmarkJoinByTicket measures one client that joins by a ticket and plays for about a second,
// including the client's side and its share of a hundred rooms.
func BenchmarkJoinByTicket(b *testing.B) {
	joined := 0
	for b.Loop() {
		joined += len(joinByTickets(b, 500))
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(joined), "µs/join")
}
