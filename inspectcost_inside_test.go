package netloop

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

var (
	crowdSchema = NewSchema("crowd", 1, 0)
	crowdShips  = NewClass[crowdShip](crowdSchema, "ship")
	crowdShouts = NewRPC[crowdShip](crowdSchema, "shout")
)

type crowdShip struct{ X, Y, VX, VY int32 }

// crowdGame has a ship for each client, and edits a fifth of them in each tick.
type crowdGame struct{}

func (crowdGame) Schema() *Schema { return crowdSchema }

func (crowdGame) Open(r *Room) error {
	r.OnJoin(func(t *Tick, c *Client) error {
		crowdShips.Spawn(t, crowdShip{}, OwnedBy(c.ID()))
		return nil
	})
	crowdShouts.Handle(r, func(*Tick, *Client, crowdShip) error { return nil })
	r.On(FixedUpdate, "test.move", func(t *Tick) {
		for o := range crowdShips.All(t) {
			if uint64(o.Owner())%5 == t.Number()%5 {
				o.Edit(t).X++
			}
		}
	})
	return nil
}

// crowd is a server at 60 Hz. The benchmark plays its clients.
type crowd struct {
	s     *Server
	links []*transport.Link
	owns  []*transport.Session
	tick  uint64
}

func newCrowd(b *testing.B, clients int) *crowd {
	b.Helper()
	s, err := New(Config{LostAfter: time.Hour, Room: RoomSpec{Rate: Hz(60), MaxClients: clients}}, crowdGame{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() }) // It has not run.
	c := &crowd{s: s}
	for range clients {
		adm, err := (admitter{s}).Admit(b.Context(), crowdSchema.s.Hello(), "here")
		if err != nil {
			b.Fatal(err)
		}
		session, link := transport.NewSession(adm.Session)
		adm.Joined(session)
		c.owns, c.links = append(c.owns, session), append(c.links, link)
		c.step(b)
	}
	for range 300 { // All have the objects, and the windows are open.
		c.step(b)
	}
	if n := len(s.room.e.Clients()); n != clients {
		b.Fatalf("%d clients play", n)
	}
	return c
}

// step runs a tick. Each client takes its snapshot, and acknowledges it.
func (c *crowd) step(b *testing.B) {
	c.tick++
	e := c.s.room.e
	in := e.Timeline().Input(c.tick)
	in.Epoch, in.Start = loop.Epoch{Tick: 1}, e.Timeline().GameTime(c.tick)
	if err := e.Step(in); err != nil {
		b.Fatal(err)
	}
	for i, link := range c.links {
		// The function that sends never fails.
		_ = link.SendDatagrams(func() time.Duration { return in.Start }, func([]byte) error { return nil })
		client, ok := e.Client(c.owns[i].ID())
		if !ok {
			continue // Its join waits for a tick with room for it.
		}
		if sent := client.Counts().Snapshots; sent > 0 { // Each is one packet.
			c.owns[i].Inbox().Push(transport.Arrival{Kind: transport.Acks, Session: c.owns[i], At: in.Start, Acks: []transport.Range{{First: 1, Last: sent}}})
		}
	}
}

// roundTicks is the number of ticks in the period of a stream, a quarter of a second.
const roundTicks = 15

// crowdViews are the views of the inspector, with the topics of their streams. Each stream also has
// the topics overview and rooms.
var crowdViews = []struct {
	name  string
	query url.Values
}{
	{"overview", url.Values{"topic": {"metrics"}, "prefix": {"clients", "transport_clients", "transport_bytes", "joins", "record_clients"}}},
	{"ticks", url.Values{"topic": {"ticks"}}},
	{"loop", url.Values{"topic": {"loop"}}},
	{"clients", url.Values{"topic": {"clients", "traffic"}, "client": {"1"}}},
	{"state", url.Values{"topic": {"state"}, "client": {"1"}}},
	{"traffic", url.Values{"topic": {"metrics", "costs"}, "prefix": {"replication", "snapshot", "full_states", "transport", "visibility"}}},
	{"rpcs", url.Values{"topic": {"metrics", "waits", "payloads"}, "prefix": {"rpc", "queue_depth", "inputs_total", "queue_drops"}, "method": {"shout"}}},
	{"log", url.Values{"topic": {"log"}}},
}

// BenchmarkInspectedTicks measures a quarter of a second of a room with 200 clients, without a tab
// of the inspector and with one in each view. %-of-period is the time of the questions, which
// netloop_inspect_seconds_total counts, as a share of the tick period. %-of-core is the time in
// which the listener's goroutine makes the JSON, as a share of a core.
func BenchmarkInspectedTicks(b *testing.B) {
	b.Run("without a tab", func(b *testing.B) {
		c := newCrowd(b, 200)
		for b.Loop() {
			for range roundTicks {
				c.step(b)
			}
		}
	})
	for _, v := range crowdViews {
		b.Run(v.name, func(b *testing.B) {
			c := newCrowd(b, 200)
			tab := newCrowdTab(c.s, v.query)
			before, rounds := c.asked(), 0
			for b.Loop() {
				done := make(chan error, 1)
				go func() { done <- tab.round(admin.AsWriter(b.Context()), rounds) }()
				for range roundTicks {
					c.step(b)
				}
				b.StopTimer() // A server has pauses between ticks, in which a round ends.
				for waits := true; waits; {
					select {
					case err := <-done:
						if waits = false; err != nil {
							b.Fatal(err)
						}
					default:
						c.step(b)
					}
				}
				b.StartTimer()
				rounds++
			}
			seconds := float64(rounds) / 4
			b.ReportMetric(100*(c.asked()-before)/seconds, "%-of-period")
			b.ReportMetric(100*tab.encoding.Seconds()/seconds, "%-of-core")
		})
	}
}

// crowdTab is a tab of the inspector.
type crowdTab struct {
	query    url.Values
	topics   []admin.Topic
	last     []uint64
	encoding time.Duration
}

func newCrowdTab(s *Server, query url.Values) *crowdTab {
	t := &crowdTab{query: query}
	for _, name := range append([]string{"overview", "rooms"}, query["topic"]...) {
		t.topics = append(t.topics, s.topics()[name])
	}
	t.last = make([]uint64, len(t.topics))
	return t
}

// round makes the events that are due.
func (t *crowdTab) round(ctx context.Context, n int) error {
	for i := range t.topics {
		if n%t.topics[i].Rounds > 0 {
			continue
		}
		v, err := t.topics[i].Next(ctx, t.query, &t.last[i])
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := json.Marshal(v); err != nil {
			return err
		}
		t.encoding += time.Since(began)
	}
	return nil
}

// asked returns the seconds that questions took so far.
func (c *crowd) asked() (seconds float64) {
	for _, v := range c.s.metrics.Values("inspect_seconds") {
		for _, series := range v {
			seconds += series.Value
		}
	}
	return seconds
}
