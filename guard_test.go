package netloop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

var (
	careless    = NewSchema("careless", 1, 0)
	hiddenOnes  = NewClass[struct{ N int32 }](careless, "hidden")
	secretOnes  = NewClass[secretState](careless, "secret")
	placedOnes  = NewClass[struct{ X float64 }](careless, "placed")
	weighedOnes = NewClass[struct{ N int32 }](careless, "weighed")
	mishap      = NewRPC[struct{ N uint64 }](careless, "mishap")
)

type secretState struct {
	Plan int32 `net:"read=team"`
}

// carelessGame panics in every function that it hands over, and counts how often.
type carelessGame struct {
	panics map[string]int
	room   *Room
	stays  *Client
}

func (*carelessGame) Schema() *Schema { return careless }

func (g *carelessGame) panic(hook string) { g.panics[hook]++; panic("in " + hook) }

func (g *carelessGame) Open(r *Room) error {
	g.room = r
	placedOnes.OnGrid(NewGrid(r, GridSpec{Radius: 10}), func(*struct{ X float64 }) (x, y, z float64) { g.panic("Class.OnGrid"); return })
	secretOnes.Reads(r, "team", func(*Object[secretState]) Target { g.panic("Class.Reads"); return Target{} })
	weighedOnes.Prioritize(r, func(*Client, *Object[struct{ N int32 }]) float64 { g.panic("Class.Prioritize"); return 2 })
	r.OnStart(func(t *Tick) {
		for range 100 { // More than the budget takes.
			weighedOnes.Spawn(t, struct{ N int32 }{})
		}
	})
	mishap.Handle(r, func(*Tick, *Client, struct{ N uint64 }) error { g.panic("mishap"); return nil })
	r.OnJoin(func(t *Tick, c *Client) error {
		if c.Join().Token == "OnJoin" {
			g.panic("OnJoin")
		}
		g.stays = c
		c.SetBudget(t, 20)
		return nil
	})
	r.OnLeave(func(*Tick, *Client, LeaveReason) { g.panic("OnLeave") })
	r.OnDrain(func(*Tick, time.Duration) { g.panic("OnDrain") })
	r.OnAdmit(func(_ context.Context, j *Join) error {
		if j.Token == "OnAdmit" {
			g.panic("OnAdmit")
		}
		return nil
	})
	return nil
}

// come lets a client in that says a token.
func (g *carelessGame) come(s *Server, token string) (*transport.Session, error) {
	hello := careless.s.Hello()
	hello.Token = token
	adm, err := s.admit(context.Background(), hello, "here")
	if err != nil {
		return nil, err
	}
	session := transport.NewSession(adm.Session)
	adm.Joined(session)
	return session, nil
}

// provoke lets every hook run, all but Prioritize, which is not asked again, more than once.
func (g *carelessGame) provoke(b *bare) {
	b.t.Helper()
	for range 3 {
		if _, err := g.come(b.s, "OnAdmit"); err == nil {
			b.t.Error("who upsets OnAdmit was admitted")
		}
		session, err := g.come(b.s, "OnJoin")
		if err != nil {
			b.t.Fatal(err)
		}
		session.End(transport.Closed{Code: CodeLost})
		if err := mishap.Post(g.room, struct{ N uint64 }{}); err != nil {
			b.t.Fatal(err)
		}
		if err := g.room.tellDrain(0); err != nil {
			b.t.Fatal(err)
		}
		if err := g.room.inspect(g.populate); err != nil {
			b.t.Fatal(err)
		}
		g.room.async.wait.Wait()
		b.step()
	}
}

func (g *carelessGame) populate(t *Tick) {
	Go(t, func(context.Context) (int, error) { return 0, nil }, func(*Tick, int, error) { g.panic("Go") })
	hiddenOnes.Spawn(t, struct{ N int32 }{}, VisibleTo(Where(func(*Client) bool { g.panic("VisibleTo"); return true })))
	secretOnes.Spawn(t, secretState{})
	placedOnes.Spawn(t, struct{ X float64 }{})
}

// Whatever function of a game panics: it costs that call, counts under its name, and the log has
// the first with its stack and in ten seconds no other.
func TestEveryHookIsGuarded(t *testing.T) {
	core, logs := logtest.New(zapcore.ErrorLevel)
	g := &carelessGame{panics: map[string]int{}}
	s, err := New(Config{Logger: zap.New(core)}, g)
	if err != nil {
		t.Fatal(err)
	}
	b, clock := &bare{t: t, s: s}, new(handClock)
	s.clock = clock
	if _, err := g.come(s, "stays"); err != nil {
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
		"VisibleTo", "Class.Reads", "Class.OnGrid", "Class.Prioritize", "OnAdmit", "OnJoin", "OnLeave", "OnDrain", "Go", "mishap",
	} {
		if hook == "Class.Prioritize" { // It is not asked again.
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
	for hook, class := range map[string]string{"VisibleTo": "hidden", "Class.Reads": "secret", "Class.OnGrid": "placed", "Class.Prioritize": "weighed"} {
		if len(lines[hook]) > 0 && lines[hook][0]["of"] != class {
			t.Errorf("%s: the line names the class %v", hook, lines[hook][0]["of"])
		}
	}
}

// Judging an object for a client allocates nothing below the guard.
func TestAGuardedHookAllocatesNothing(t *testing.T) {
	g := &carelessGame{panics: map[string]int{}}
	s, err := New(Config{}, g)
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{t: t, s: s}
	if _, err := g.come(s, "stays"); err != nil {
		t.Fatal(err)
	}
	b.step()
	hears := &audience{s.room, hiddenOnes.c.nv, Where(func(c *Client) bool { return c == g.stays })}
	reads := &readers{room: s.room, who: make([]func(*netvar.Object) Target, 2)}
	var o *netvar.Object
	if err := s.room.inspect(func(t *Tick) { o = secretOnes.Spawn(t, secretState{}, OwnedBy(g.stays.id)).o }); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		if !hears.Includes(g.stays.peer) || reads.Withheld(o, g.stays.peer) != 0 {
			t.Error("it was not judged")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
