package room_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/transport"
)

var (
	careless    = netloop.NewSchema("careless", 1, 0)
	hiddenOnes  = netloop.NewClass[struct{ N int32 }](careless, "hidden")
	secretOnes  = netloop.NewClass[secretState](careless, "secret")
	placedOnes  = netloop.NewClass[struct{ X float64 }](careless, "placed")
	weighedOnes = netloop.NewClass[struct{ N int32 }](careless, "weighed")
	mishap      = netloop.NewRPC[struct{ N uint64 }](careless, "mishap")
)

type secretState struct {
	Plan int32 `net:"read=team"`
}

// carelessGame panics in each of its functions, and counts the calls.
type carelessGame struct {
	panics map[string]int
	room   *netloop.Room
	stays  *netloop.Client
}

func (*carelessGame) Schema() *netloop.Schema { return careless }

func (g *carelessGame) panic(hook string) { g.panics[hook]++; panic("in " + hook) }

func (g *carelessGame) Open(r *netloop.Room) error {
	g.room = r
	placedOnes.PlaceOn(netloop.NewGrid(r, netloop.GridSpec{Radius: 10}), func(*struct{ X float64 }) (x, y, z float64) { g.panic("Class.PlaceOn"); return })
	secretOnes.Reads(r, "team", func(*netloop.Object[secretState]) netloop.Target { g.panic("Class.Reads"); return netloop.Target{} })
	weighedOnes.WeightFor(r, func(*netloop.Client, *netloop.Object[struct{ N int32 }]) float64 {
		g.panic("Class.WeightFor")
		return 2
	})
	r.OnStart(func(t *netloop.Tick) {
		for range 100 { // More than the budget takes.
			weighedOnes.Spawn(t, struct{ N int32 }{})
		}
	})
	r.OnStart(func(*netloop.Tick) { g.panic("OnStart") })
	mishap.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) error { g.panic("mishap"); return nil })
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if c.Join().Token == "OnJoin" {
			g.panic("OnJoin")
		}
		g.stays = c
		c.SetBudget(t, 20)
		return nil
	})
	r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { g.panic("OnLeave") })
	r.OnDrain(func(*netloop.Tick, time.Duration) { g.panic("OnDrain") })
	r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
		if j.Token == "OnAdmit" {
			g.panic("OnAdmit")
		}
		return nil
	})
	return nil
}

// come admits a client with a token.
func (g *carelessGame) come(b *bare, token string) (*testConn, error) {
	hello := hello(careless)
	hello.Token = token
	adm, err := b.server.Handler.Admit(context.Background(), hello, "here")
	if err != nil {
		return nil, err
	}
	session := newTestConn(adm)
	return session, nil
}

// provoke runs each hook more than once, except Weigh, which is not called again.
func (g *carelessGame) provoke(b *bare) {
	b.t.Helper()
	for range 3 {
		if _, err := g.come(b, "OnAdmit"); err == nil {
			b.t.Error("who upsets OnAdmit was admitted")
		}
		session, err := g.come(b, "OnJoin")
		if err != nil {
			b.t.Fatal(err)
		}
		session.End(transport.Closed{Code: netloop.CodeLost})
		if err := mishap.Post(g.room, struct{ N uint64 }{}); err != nil {
			b.t.Fatal(err)
		}
		if err := b.room.Shutdown.Drain(0); err != nil {
			b.t.Fatal(err)
		}
		if err := b.inspect(g.populate); err != nil {
			b.t.Fatal(err)
		}
		b.room.WaitForWork()
		b.step()
	}
}

func (g *carelessGame) populate(t *netloop.Tick) {
	netloop.Go(t, func(context.Context) (int, error) { return 0, nil }, func(*netloop.Tick, int, error) { g.panic("Go") })
	hiddenOnes.Spawn(t, struct{ N int32 }{}, netloop.VisibleTo(netloop.Where(func(*netloop.Client) bool { g.panic("VisibleTo"); return true })))
	secretOnes.Spawn(t, secretState{})
	placedOnes.Spawn(t, struct{ X float64 }{})
}

// A panic in any function of a game ends only that call, is counted under its name, and is logged
// with its stack the first time and then not for ten seconds.
func TestEveryHookIsGuarded(t *testing.T) {
	core, logs := logtest.New(zapcore.ErrorLevel)
	g := &carelessGame{panics: map[string]int{}}
	b, clock := newBareOf(t, netloop.Config{Log: logging.Slog(zap.New(core))}, g), new(handClock)
	b.server.UseClock(clock)
	if _, err := g.come(b, "stays"); err != nil {
		t.Fatal(err)
	}
	b.step()
	g.provoke(b)
	first := map[string]int{}
	for hook, n := range g.panics {
		first[hook] = n
	}
	clock.now += 11 * time.Second
	for range 600 {
		b.step()
	}
	g.provoke(b)

	lines := map[string][]map[string]any{}
	for _, e := range logs.All() {
		if !strings.HasSuffix(e.Message, " panicked") {
			t.Errorf("the log has also %q, %v", e.Message, e.ContextMap())
			continue
		}
		name := e.ContextMap()["hook"]
		if name == nil {
			name = e.ContextMap()["method"]
		}
		lines[fmt.Sprint(name)] = append(lines[fmt.Sprint(name)], e.ContextMap())
	}
	for _, hook := range []string{
		"VisibleTo", "Class.Reads", "Class.PlaceOn", "Class.WeightFor", "OnAdmit", "OnJoin", "OnLeave", "OnDrain", "Go", "mishap", "OnStart",
	} {
		if hook == "Class.WeightFor" || hook == "OnStart" { // They are not called again.
			if g.panics[hook] != 1 || len(lines[hook]) != 1 {
				t.Errorf("%s: %d panics, %d lines", hook, g.panics[hook], len(lines[hook]))
			}
		} else if first[hook] < 3 || len(lines[hook]) != 2 {
			t.Errorf("%s: %d panics at first, and %d lines in all, want 2", hook, first[hook], len(lines[hook]))
			continue
		} else if kept := lines[hook][1]["unlogged_before"]; kept != uint64(first[hook]-1) {
			t.Errorf("%s: the second line says %v unlogged before, want %d", hook, kept, first[hook]-1)
		}
		if len(lines[hook]) == 0 {
			continue
		}
		if line := lines[hook][0]; !strings.Contains(fmt.Sprint(line["stack"]), "carelessGame") || line["panic"] != "in "+hook {
			t.Errorf("%s: the first line has panic %v and stack %v", hook, line["panic"], line["stack"])
		}
		if line := fmt.Sprintf(`netloop_system_panics_total{system="%s"} %d`, hook, g.panics[hook]); !b.scraped(line) {
			t.Errorf("the scrape lacks %s", line)
		}
	}
	for hook, class := range map[string]string{"VisibleTo": "hidden", "Class.Reads": "secret", "Class.PlaceOn": "placed", "Class.WeightFor": "weighed"} {
		if len(lines[hook]) > 0 && lines[hook][0]["of"] != class {
			t.Errorf("%s: the line names the class %v", hook, lines[hook][0]["of"])
		}
	}
}
