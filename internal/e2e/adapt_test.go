package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// TestOlderClientPlaysOnANewerServer uses a client with fewer classes, methods and fields, in
// another order.
func TestOlderClientPlaysOnANewerServer(t *testing.T) {
	type sailor struct {
		Name string `net:"max=8"`
	}
	type craft struct {
		Crew []sailor
		Name string  `net:"max=16"`
		X    float32 `net:"quant=1/16"`
	}
	type shout struct {
		Text string `net:"max=32"`
	}
	type muster struct{ Least int64 }
	type roll struct{ Names []string }
	old := netloop.NewSchema("builds", 3, 2)
	mustered := netloop.NewCall[muster, roll](old, "muster")
	shouts := netloop.NewRPC[shout](old, "shout", netloop.AtStage(netloop.PreUpdate))
	crafts := netloop.NewClass[craft](old, "craft")

	b := newServerBuild().withCrafts()
	w := netlooptest.New(t, b)
	c := w.JoinAs(client.Config{Schema: old}, perfect)
	var spawned, changed, heard []string
	client.Watch(c, crafts, client.Watcher[craft]{ // Before it has the server's schema.
		Spawn: func(_ *netloop.Tick, o *netloop.Object[craft]) { spawned = append(spawned, fmt.Sprint(o.State())) },
		Change: func(_ *netloop.Tick, _ *netloop.Object[craft], old craft) {
			changed = append(changed, fmt.Sprint(old.X))
		},
	})
	client.Handle(c, shouts, func(_ *netloop.Tick, m shout) { heard = append(heard, m.Text) })
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	if c.Minor() != 2 || b.minor != 2 {
		t.Errorf("minor versions %d and %d are in force", c.Minor(), b.minor)
	}
	w.Tick(func(tick *netloop.Tick) {
		for o := range b.crafts.All(tick) {
			o.Edit(tick).Fuel-- // Fuel is not in this client's schema.
		}
	})
	w.Step(3)
	w.Tick(func(tick *netloop.Tick) {
		for o := range b.crafts.All(tick) {
			o.Edit(tick).X = 4
		}
	})
	client.Send(c, shouts, shout{"ahoy"})
	var names []string
	client.Call(c, mustered, muster{4}, func(_ *netloop.Tick, r roll, err error) { names = append(r.Names, fmt.Sprint(err)) })
	w.Step(5)
	if got := fmt.Sprint(spawned, changed, heard, names); got != "[{[{bo} {cy}] anna 2.5}] [2.5] [back: ahoy] [ann  <nil>]" {
		t.Errorf("it saw %s", got)
	}
	if len(b.heard) != 1 || b.heard[0] != whole("ahoy", 0, 0) {
		t.Errorf("the server got %+v", b.heard)
	}
	if s := c.Stats(); s.Unknown != 1 || s.Rejected != 0 || s.Unsent != 0 || s.Malformed != 0 {
		t.Errorf("%d flares of no meaning here, %d rejected, %d unsent, %d malformed", s.Unknown, s.Rejected, s.Unsent, s.Malformed)
	}
	agree(t, w, c)
}

// TestNewerClientPlaysOnAnOlderServer uses a client with more classes, methods and fields.
func TestNewerClientPlaysOnAnOlderServer(t *testing.T) {
	type craft struct {
		Shield  float64
		Fuel    int32
		X       float32 `net:"quant=1/16"`
		Name    string  `net:"max=64"` // The server's limit of 16 applies.
		Crew    []sailor
		Home    netloop.Ref[buoy]
		Moods   [3]int8
		Pennant string
	}
	type mine struct{ Armed bool }
	type shout struct {
		Echo bool
		Loud int8
		Text string `net:"max=64"`
		By   struct {
			Rank uint8
			Name string `net:"max=8"`
			Hat  string
		}
	}
	type muster struct {
		Least int64
		Watch string `net:"max=8"`
		Drill bool
	}
	type roll struct {
		Absent  uint32
		Present int64
		Names   []string
	}
	fresh := netloop.NewSchema("builds", 3, 9)
	mines := netloop.NewClass[mine](fresh, "mine")
	buoys := netloop.NewClass[buoy](fresh, "buoy")
	crafts := netloop.NewClass[craft](fresh, "craft")
	wave := netloop.NewRPC[flare](fresh, "wave")
	survey := netloop.NewCall[muster, roll](fresh, "survey")
	mustered := netloop.NewCall[muster, roll](fresh, "muster")
	shouts := netloop.NewRPC[shout](fresh, "shout", netloop.AtStage(netloop.PreUpdate))
	netloop.NewRPC[flare](fresh, "flare")

	b := newServerBuild().withCrafts()
	w := netlooptest.New(t, b)
	c := enter(t, w, fresh, perfect)
	if c.Minor() != 5 || b.minor != 5 {
		t.Errorf("minor versions %d and %d are in force", c.Minor(), b.minor)
	}
	w.Look(c, func(tick *netloop.Tick) {
		for range mines.All(tick) {
			t.Error("a mine that the server cannot have")
		}
		n := 0
		for o := range crafts.All(tick) {
			s := o.State()
			home, ok := s.Home.Get(tick)
			if !ok || home.State().N != 7 || s.Shield != 0 || s.Pennant != "" || s.Fuel != 80 || s.Moods != [3]int8{1, 2, 3} || len(s.Crew) != 2 {
				t.Errorf("the client has %+v at home %v", s, home)
			}
			n++
		}
		for o := range buoys.All(tick) {
			n += int(o.State().N)
		}
		if n != 8 {
			t.Error("it sees", n)
		}
	})
	var heard []shout
	client.Handle(c, shouts, func(_ *netloop.Tick, m shout) { heard = append(heard, m) })
	said := shout{Echo: true, Loud: 3, Text: "hi"}
	said.By.Rank, said.By.Hat = 4, "red"
	client.Send(c, shouts, said)
	client.Send(c, shouts, shout{Text: strings.Repeat("x", 33)}) // This build's limit is higher.
	client.Send(c, wave, flare{2})
	var answers []string
	ask := func(k *netloop.Call[muster, roll], q muster) {
		client.Call(c, k, q, func(_ *netloop.Tick, r roll, err error) {
			var refusal *netloop.Refusal
			if errors.As(err, &refusal) {
				answers = append(answers, fmt.Sprintf("%d %s", refusal.Code, refusal.Text))
			} else {
				answers = append(answers, fmt.Sprint(r, err))
			}
		})
	}
	ask(mustered, muster{4, "dog", true})
	ask(mustered, muster{4, "none", true})
	ask(survey, muster{})
	w.Step(5)
	if len(b.heard) != 1 || b.heard[0] != whole("hi", 3, 4) {
		t.Errorf("the server got %+v", b.heard)
	}
	if len(heard) != 1 || heard[0].Text != "back: hi" || heard[0].Loud != 9 || heard[0].By.Name != "cook" || heard[0].Echo || heard[0].By.Hat != "" {
		t.Errorf("it got %+v", heard)
	}
	want := `[15 the server has no method "survey" {0 5 [ann dog]} <nil> 7 no such watch]`
	if got := fmt.Sprint(answers); got != want {
		t.Errorf("answers %s\nwant    %s", got, want)
	}
	// No handler for flares here.
	if s := c.Stats(); s.Unsent != 3 || s.Dropped != 0 || s.Rejected != 1 {
		t.Errorf("%d unsent, %d dropped, %d rejected", s.Unsent, s.Dropped, s.Rejected)
	}
	agree(t, w, c)
}

// TestRenamedFieldKeepsItsName: a build that only renamed a field has the same fingerprint. A
// build that also changed something is matched by the old names.
func TestRenamedFieldKeepsItsName(t *testing.T) {
	type hand struct {
		Grade uint8  `net:"name=Rank"`
		Label string `net:"max=8,name=Name"`
	}
	type vessel struct {
		Moods  [3]int8
		Litres int32   `net:"name=Fuel"`
		Title  string  `net:"max=16,name=Name"`
		East   float32 `net:"name=X,quant=1/16"`
		Men    []hand  `net:"name=Crew"`
	}
	type call struct {
		Words string `net:"max=32,name=Text"`
		Who   hand   `net:"name=By"`
	}
	s := netloop.NewSchema("builds", 3, 5)
	vessels := netloop.NewClass[vessel](s, "craft")
	calls := netloop.NewRPC[call](s, "shout", netloop.AtStage(netloop.PreUpdate))
	b := newServerBuild().withCrafts()
	w := netlooptest.New(t, b)
	c := enter(t, w, s, perfect)
	w.Look(c, func(tick *netloop.Tick) {
		for o := range vessels.All(tick) {
			if got := fmt.Sprint(o.State()); got != "{[1 2 3] 80 anna 2.5 [{1 bo} {2 cy}]}" {
				t.Errorf("it sees %s", got)
			}
		}
	})
	var heard []call
	client.Handle(c, calls, func(_ *netloop.Tick, m call) { heard = append(heard, m) })
	client.Send(c, calls, call{"ahoy", hand{3, "mate"}})
	w.Step(5)
	if len(b.heard) != 1 || b.heard[0] != (shout{Text: "ahoy", By: sailor{3, "mate"}}) {
		t.Errorf("the server got %+v", b.heard)
	}
	if len(heard) != 1 || heard[0] != (call{"back: ahoy", hand{2, "cook"}}) {
		t.Errorf("it got %+v", heard)
	}
	agree(t, w, c)
}

// TestIncompatibleTypesAreRefusedByName: the client's error names the difference, and OnAdmit
// does not run.
func TestIncompatibleTypesAreRefusedByName(t *testing.T) {
	b := newServerBuild()
	w := netlooptest.New(t, admitReporter{b, func() { t.Error("the game was asked to admit it") }})
	for _, c := range []struct {
		want    string
		declare func(*netloop.Schema)
	}{
		{`class "craft": field Fuel is int32 on the server, but int64 on the client`, func(s *netloop.Schema) {
			netloop.NewClass[struct{ Fuel int64 }](s, "craft")
		}},
		{`class "craft": field Crew[].Rank is uint8 on the server, but string max=128 on the client`, func(s *netloop.Schema) {
			netloop.NewClass[struct {
				Crew []struct{ Rank string } `net:"max=2"`
			}](s, "craft")
		}},
		{`class "craft": field X is float32 quant=1/16 on the server, but float32 on the client`, func(s *netloop.Schema) {
			netloop.NewClass[struct{ X float32 }](s, "craft")
		}},
		{`method "shout": field By.Rank of its message is uint8 on the server, but uint16 on the client`, func(s *netloop.Schema) {
			netloop.NewRPC[struct{ By struct{ Rank uint16 } }](s, "shout")
		}},
		{`method "muster": field Present of its answer is int64 on the server, but int32 on the client`, func(s *netloop.Schema) {
			netloop.NewCall[muster, struct{ Present int32 }](s, "muster")
		}},
		{`method "muster" is a call on the server, but an RPC on the client`, func(s *netloop.Schema) {
			netloop.NewRPC[muster](s, "muster")
		}},
		{`method "flare": its message is {Colour uint8} on the server, but proto arena.v1.Say on the client`, func(s *netloop.Schema) {
			netloop.NewRPC[*arenav1.Say](s, "flare")
		}},
	} {
		s := netloop.NewSchema("builds", 3, 5)
		c.declare(s)
		refused := w.JoinAs(client.Config{Schema: s}, perfect)
		w.Until(60, func() bool { return refused.Closed() != nil })
		if got := refused.Closed(); got.Code != netloop.CodeSchemaMismatch || got.Text != c.want {
			t.Errorf("got %v\nwant %s", got, c.want)
		}
	}
}

// TestOtherBuildOverQUIC connects an older client to a real server. The Dial of an incompatible
// client fails.
func TestOtherBuildOverQUIC(t *testing.T) {
	type craft struct {
		Name string `net:"max=16"`
	}
	type shout struct {
		Text string `net:"max=32"`
	}
	old := netloop.NewSchema("builds", 3, 1)
	crafts := netloop.NewClass[craft](old, "craft")
	shouts := netloop.NewRPC[shout](old, "shout", netloop.AtStage(netloop.PreUpdate))
	s, _ := serve(t, newServerBuild().withCrafts(), 60)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: old})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var name, heard string
	client.Watch(c, crafts, client.Watcher[craft]{Spawn: func(_ *netloop.Tick, o *netloop.Object[craft]) { name = o.State().Name }})
	client.Handle(c, shouts, func(_ *netloop.Tick, m shout) { heard = m.Text })
	client.Send(c, shouts, shout{"ahoy"})
	verified, verdict := false, error(nil)
	c.Verify(func(err error) { verified, verdict = true, err })
	run, stop := context.WithCancel(ctx)
	c.On(netloop.PostLateUpdate, "enough", func(*netloop.Tick) {
		if name != "" && heard != "" && verified {
			stop()
		}
	})
	if err := c.Run(run); err != nil || name != "anna" || heard != "back: ahoy" || verdict != nil {
		t.Errorf("%v: it has %q, got %q, verified: %v", err, name, heard, verdict)
	}

	bad := netloop.NewSchema("builds", 3, 1)
	netloop.NewClass[struct{ Name int8 }](bad, "craft")
	var refusal *netloop.Refusal
	if _, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: bad}); !errors.As(err, &refusal) ||
		refusal.Code != netloop.CodeSchemaMismatch || !strings.Contains(refusal.Text, `class "craft": field Name is string max=16 on the server, but int8`) {
		t.Errorf("refused with %v", err)
	}
}

// FuzzAdapt: for any tables of a server, the client adapts or returns a typed error, and decoding
// by these tables does no harm.
func FuzzAdapt(f *testing.F) {
	opened := bridge.Netloop.Schema(newServerBuild().schema)
	f.Fuzz(func(t *testing.T, tables, payload []byte) {
		var table netloopv1.SchemaTables
		if (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: 64}).Unmarshal(tables, &table) != nil {
			return
		}
		foreign, err := opened.Adapt(&table)
		var refusal *transport.Refusal
		var closed *transport.Closed
		if err != nil {
			if !errors.As(err, &refusal) && !errors.As(err, &closed) {
				t.Fatal(err)
			}
			return
		}
		for id := range uint32(len(table.Methods) + 2) {
			for _, reply := range []bool{false, true} {
				m := transport.Message{Method: id, Reply: reply, Call: 1, Payload: payload}
				v, err := foreign.Decode(&m)
				if _, known := opened.RPCs().ByID(m.Method); err == nil && v != nil && !known {
					t.Fatalf("method %d: %v, %v", m.Method, v, err)
				}
			}
		}
		for _, own := range opened.RPCs().Methods() {
			if m, ok := foreign.Method(own.ID); ok && table.Methods[m.ID-1].GetName() != own.Name {
				t.Fatalf("%s is sent as %s", own.Name, table.Methods[m.ID-1].GetName())
			}
		}
	})
}
