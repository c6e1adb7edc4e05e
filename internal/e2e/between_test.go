package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/netlooptest"
)

// The messages between the rooms of these tests.
var (
	letters = netloop.NewSchema("letters", 1, 0)
	results = netloop.NewRPC[result](letters, "result", netloop.ServerOnly(), netloop.AtStage(netloop.PreUpdate, netloop.PostLateUpdate))
	pings   = netloop.NewRPC[result](letters, "ping")
	orders  = netloop.NewRPC[result](letters, "order")
	// A client of a build without the server-only mark of these.
	forging      = netloop.NewSchema("letters", 1, 0)
	forgedResult = netloop.NewRPC[result](forging, "result", netloop.AtStage(netloop.PreUpdate, netloop.PostLateUpdate))
	_            = netloop.NewRPC[result](forging, "ping")
	forgedOrder  = netloop.NewRPC[result](forging, "order")
)

type result struct {
	Table  string  `net:"max=16"`
	Scores []int32 `net:"max=2000"`
}

func openLetters(t *testing.T, fill script, o ...netlooptest.Option) *netlooptest.World {
	return netlooptest.New(t, game{letters, fill}, o...)
}

// refusedAs returns the code of a refusal, or 0 for other errors.
func refusedAs(err error) netloop.Code {
	var refused *netloop.Refusal
	if errors.As(err, &refused) {
		return refused.Code
	}
	return 0
}

// A table sends its result to the lobby. The message runs once, at the declared stage, with the
// table as its sender and with a copy of the values; the sender learns that it ran. A sleeping
// lobby wakes for it.
func TestARoomMessageReachesTheLobbyOnce(t *testing.T) {
	var heard []string
	var told []error
	w := openLetters(t, func(r *netloop.Room) {
		results.HandleRoom(r, func(tick *netloop.Tick, from *netloop.Sender, m result) error {
			heard = append(heard, fmt.Sprint(r.Spec().Name, " at ", tick.Stage(), ": ", *from, m))
			m.Scores[0] = 99
			return nil
		})
	}, netlooptest.Room(netloop.RoomSpec{Name: "lobby", Sleep: true, Rate: netloop.Hz(20)}))
	openRoom(t, w, table("a"))
	w.Until(100, w.Room("lobby").Asleep)
	scores := []int32{1, 2}
	w.Room("a").Tick(func(tick *netloop.Tick) {
		then := func(_ *netloop.Tick, err error) { told = append(told, err) }
		results.SendRoom(tick, "lobby", result{"one", scores}, then)
		results.SendRoom(tick, "a", result{"self", scores}, then, netloop.RunAt(netloop.PostLateUpdate))
	})
	scores[1] = 7
	if w.Step(1); w.Room("lobby").Asleep() {
		t.Error("the lobby does not wake")
	}
	w.Step(4)
	want := "lobby at PreUpdate: {a table} {one [1 2]},a at PostLateUpdate: {a table} {self [1 2]}"
	if got := strings.Join(heard, ","); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if fmt.Sprint(told, scores) != "[<nil> <nil>] [1 7]" {
		t.Errorf("results %v; sent %v", told, scores)
	}
}

// A message that reaches no handler is refused with the code of its reason. So is a message from
// a client that only rooms may send, even if the client's build lacks this mark.
func TestUndeliverableRoomMessagesAreRefused(t *testing.T) {
	handled := 0
	w := openLetters(t, func(r *netloop.Room) {
		results.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, result) error { handled++; return nil })
		orders.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, result) error { handled++; return nil })
	})
	openRoom(t, w, table("a"))
	got := map[string]netloop.Code{}
	note := func(name string) func(*netloop.Tick, error) {
		return func(_ *netloop.Tick, err error) { got[name] = refusedAs(err) }
	}
	w.Room("a").Tick(func(tick *netloop.Tick) {
		results.SendRoom(tick, "nowhere", result{}, note("no room"))
		pings.SendRoom(tick, "", result{}, note("no handler"))
		pings.SendServer(tick, result{}, note("no program"))
	})
	w.Step(6)
	want := map[string]netloop.Code{
		"no room": netloop.CodeRoomUnknown, "no handler": netloop.CodeUnknownMethod, "no program": netloop.CodeUnknownMethod,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("refused %v, want %v", got, want)
	}
	handled = 0
	c := w.JoinAs(client.Config{Schema: forging}, perfect)
	w.Step(20)
	client.Send(c, forgedResult, result{Table: "mine"})
	client.Send(c, forgedOrder, result{Table: "mine"})
	w.Step(20)
	if handled != 0 {
		t.Error("a client's message runs that only rooms may send")
	}
	if n := sumOf(t, serverOf(w), "netloop_rpcs_total", `outcome="forbidden"`); n != 2 {
		t.Errorf("%d messages were counted as forbidden", n)
	}
}

// A room with 1 024 pending results cannot request another one, and gets an error.
func TestPendingRoomMessageResultsAreBounded(t *testing.T) {
	heard, told := 0, map[string]int{}
	w := openLetters(t, func(r *netloop.Room) {
		results.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, result) error { heard++; return nil })
	})
	for i := range 5 {
		openRoom(t, w, netloop.RoomSpec{Name: fmt.Sprint(i), Rate: netloop.Hz(1)})
	}
	w.Step(2)
	send := func(name string, many int) {
		w.Tick(func(tick *netloop.Tick) {
			for range many {
				results.SendRoom(tick, name, result{}, func(_ *netloop.Tick, err error) { told[fmt.Sprint(err)]++ })
			}
		})
	}
	for i := range 4 {
		send(fmt.Sprint(i), 256)
	}
	w.Step(1)
	send("4", 10)
	w.Step(120)
	if want := fmt.Sprint(map[string]int{"<nil>": 1024, netloop.ErrTooMuchWork.Error(): 10}); fmt.Sprint(told) != want || heard != 1024 {
		t.Errorf("%d ran, results %v, want %s", heard, told, want)
	}
}

// Invalid messages and handlers panic or fail at once, with the name of the called function.
func TestInvalidRoomMessagesPanic(t *testing.T) {
	w := openLetters(t, func(r *netloop.Room) {
		r.On(netloop.Update, "misuse", func(tick *netloop.Tick) {
			if tick.Number() != 2 {
				return
			}
			for name, c := range map[string]struct {
				fn   func()
				says string
			}{
				"another schema": {func() { echo.SendRoom(tick, "", text{}, nil) }, "netloop: RPC.SendRoom: method \"echo\" belongs"},
				"a wrong stage": {
					func() { results.SendRoom(tick, "", result{}, nil, netloop.RunAt(netloop.Update)) },
					"netloop: RPC.SendRoom: method \"result\" does not run at Update",
				},
				"with state": {func() { results.SendRoom(tick, "", result{}, nil, netloop.WithState()) }, "netloop: RPC.SendRoom: WithState"},
				"too long":   {func() { results.SendServer(tick, result{Table: strings.Repeat("x", 17)}, nil) }, "netloop: sending \"result\""},
			} {
				func() {
					defer func() {
						if v := fmt.Sprint(recover()); !strings.HasPrefix(v, c.says) {
							t.Errorf("%s: %q", name, v)
						}
					}()
					c.fn()
				}()
			}
		})
	})
	w.Step(3)
	s := serverOf(w)
	ignore := func(context.Context, *netloop.Sender, result) {}
	if err := echo.HandleServer(s, nil); err == nil {
		t.Error("a method of another schema is handled")
	}
	if err := results.HandleServer(s, ignore); err != nil {
		t.Error(err)
	}
	if err := results.HandleServer(s, ignore); err == nil || !strings.HasPrefix(err.Error(), "netloop: RPC.HandleServer: method") {
		t.Errorf("a second handler: %v", err)
	}
	if err := results.PostRoom(t.Context(), s, "nowhere", result{}); refusedAs(err) != netloop.CodeRoomUnknown {
		t.Errorf("posted nowhere: %v", err)
	}
	if err := echo.PostRoom(t.Context(), s, "", text{}); err == nil {
		t.Error("a message of another schema is posted")
	}
}

// Rooms on goroutines of their own and the program exchange messages. Messages that a room sends
// in its last tick reach the program before Run returns, even after a panic of a handler.
func TestRoomsAndTheServerExchangeMessages(t *testing.T) {
	const tables = 8
	var ended, scored atomic.Int32
	done := make(chan struct{})
	g := game{letters, func(r *netloop.Room) {
		if r.Spec().Name == "" {
			results.HandleRoom(r, func(tick *netloop.Tick, from *netloop.Sender, m result) error {
				if m.Scores[0]++; m.Scores[0] == 41 {
					results.SendServer(tick, m, nil)
					return nil
				}
				results.SendRoom(tick, from.Room, m, nil)
				return nil
			})
			return
		}
		results.HandleRoom(r, func(tick *netloop.Tick, from *netloop.Sender, m result) error {
			m.Scores[0]++
			results.SendRoom(tick, "", m, nil)
			return nil
		})
		r.OnDrain(func(tick *netloop.Tick, _ time.Duration) { orders.SendServer(tick, result{Table: r.Spec().Name}, nil) })
	}}
	s, stop := serveAs(t, g, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(200), Sleep: true}}, func(s *netloop.Server) {
		if err := errors.Join(
			results.HandleServer(s, func(context.Context, *netloop.Sender, result) {
				if scored.Add(1) == tables {
					close(done)
				}
				panic("the program fails")
			}),
			orders.HandleServer(s, func(context.Context, *netloop.Sender, result) { ended.Add(1) }),
		); err != nil {
			t.Error(err)
		}
	})
	for i := range tables {
		name := fmt.Sprint(i)
		if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: name, Rate: netloop.Hz(200), Sleep: true}); err != nil {
			t.Fatal(err)
		}
		if err := results.PostRoom(t.Context(), s, name, result{name, []int32{1}}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%d tables have scored", scored.Load())
	}
	if err := results.HandleServer(s, nil); err == nil {
		t.Error("a handler is added to a server that runs")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if ended.Load() != tables || scored.Load() != tables {
		t.Errorf("%d tables have ended, %d have scored", ended.Load(), scored.Load())
	}
}

// sumOf adds up the series of a metric family that have the given label.
func sumOf(t testing.TB, s *netloop.Server, family, label string) (n int) {
	t.Helper()
	rec := httptest.NewRecorder()
	m := bridge.Netloop.Server(s).Room.Metrics()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(rec.Body.String()) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(series, family+"{") || !strings.Contains(series, label) {
			continue
		}
		one, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}
