package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Two builds of the client that know the world of game_test.go differently: one has other
// fields in thing and no note, the other the reverse.
type (
	thingElsewhere struct {
		Glow  float64
		Marks [2]uint8 `net:"name=Tags"`
		X     float32  `net:"quant=1/16"`
		Count int32    `net:"name=N"`
	}
	noteElsewhere struct {
		List []int16 `net:"max=8"`
		Ink  uint8
	}
)

var (
	thingSchema = netloop.NewSchema("test", 1, 1)
	lessThings  = netloop.NewClass[thingElsewhere](thingSchema, "thing")
	noteSchema  = netloop.NewSchema("test", 1, 2)
	_           = netloop.NewClass[struct{ A, B int8 }](noteSchema, "curtain")
	otherNotes  = netloop.NewClass[noteElsewhere](noteSchema, "note")
)

// TestEveryBuildConvergesOverBadLinks plays random worlds with clients of three builds, and
// compares what each can see with a mirror kept by the test.
func TestEveryBuildConvergesOverBadLinks(t *testing.T) {
	for seed := range seeds(t, 50) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { convergeBuilds(t, seed) })
	}
}

// seen collects what a client of another build is told.
type seen struct {
	spawned, despawned int
	last               map[*netloop.Object[thingElsewhere]]thingElsewhere
}

func (s *seen) watch(t *testing.T, c *client.Client) {
	s.last = map[*netloop.Object[thingElsewhere]]thingElsewhere{}
	client.Watch(c, lessThings, client.Watcher[thingElsewhere]{
		Spawn: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere]) {
			s.spawned++
			s.last[o] = o.State()
		},
		Change: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere], old thingElsewhere) {
			if old != s.last[o] || old == o.State() || o.State().Count < old.Count {
				t.Errorf("told of a change from %+v to %+v, after %+v", old, o.State(), s.last[o])
			}
			s.last[o] = o.State()
		},
		Despawn: func(_ *netloop.Tick, o *netloop.Object[thingElsewhere], _ thingElsewhere) {
			s.despawned++
			delete(s.last, o)
		},
	})
}

func convergeBuilds(t *testing.T, seed uint64) {
	m := newChurn(seed)
	w := open(t, func(*netloop.Room) {}, netlooptest.Seed(seed))
	l := netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
	less := w.JoinAs(client.Config{Schema: thingSchema}, l)
	other := w.JoinAs(client.Config{Schema: noteSchema}, l)
	same := w.Join("", nil, l)
	clients := []*client.Client{less, other, same}
	var told seen
	told.watch(t, less)
	for range 200 + m.rng.IntN(100) {
		w.Step(1)
		if m.rng.IntN(10) > 0 {
			w.Tick(m.change)
		}
	}
	w.Until(600, func() bool {
		return !slices.ContainsFunc(clients, func(c *client.Client) bool { return c.State().Phase != client.Playing })
	})
	l.Loss = 0
	for _, c := range clients {
		w.SetLink(c, l)
	}
	w.Step(100)
	if err := m.compareBuilds(w, less, other); err != nil {
		t.Error(err)
	}
	if told.spawned-told.despawned != len(m.things) || len(told.last) != len(m.things) {
		t.Errorf("told of %d spawns and %d despawns, %d things are left", told.spawned, told.despawned, len(m.things))
	}
	for _, c := range clients {
		agree(t, w, c)
	}
	if s := less.Stats(); s.Malformed != 0 || s.Unequal != 0 {
		t.Errorf("%d malformed, %d unequal", s.Malformed, s.Unequal)
	}
}

// compareBuilds reports in what the clients of other builds differ from the mirror. Objects
// come in the order of their ids, whatever the type of their Refs.
func (m *churn) compareBuilds(w *netlooptest.World, less, other *client.Client) error {
	var got, want []string
	w.Look(less, func(t *netloop.Tick) {
		for o := range lessThings.All(t) {
			s := o.State()
			got = append(got, fmt.Sprint(s.Count, s.X, s.Marks, s.Glow))
		}
	})
	w.Look(other, func(t *netloop.Tick) {
		for o := range otherNotes.All(t) {
			s := o.State()
			got = append(got, fmt.Sprint(len(s.List), s.List, s.Ink))
		}
	})
	for _, r := range order(m.things) {
		s := m.things[r]
		want = append(want, fmt.Sprint(s.N, s.X, s.Tags, 0))
	}
	for _, r := range order(m.notes) {
		want = append(want, fmt.Sprint(len(m.notes[r].List), m.notes[r].List, 0))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("they see %v\nwant     %v", got, want)
	}
	return nil
}

// TestLargeSchemaGoesThroughTheHandshake matches 500 methods and 100 classes with a build
// that has 50 fewer of them, and calls the last.
func TestLargeSchemaGoesThroughTheHandshake(t *testing.T) {
	type state struct {
		PositionX, PositionY, VelocityX, VelocityY float32 `net:"quant=1/256"`
		Health, Armour, Ammunition, Score          int32
		Title                                      string `net:"max=24"`
		Target                                     netloop.Ref[thing]
	}
	type message struct {
		TargetX, TargetY float32 `net:"quant=1/256"`
		Amount           uint16
		Comment          string `net:"max=64"`
	}
	declare := func(skip int) (*netloop.Schema, *netloop.Class[state], *netloop.Call[message, sum]) {
		s := netloop.NewSchema("large", 1, 0)
		var c *netloop.Class[state]
		for i := skip; i < 100; i++ {
			c = netloop.NewClass[state](s, fmt.Sprintf("large.class.number.%d", i))
		}
		var k *netloop.Call[message, sum]
		for i := skip; i < 500; i++ {
			k = netloop.NewCall[message, sum](s, fmt.Sprintf("large.method.number.%d", i))
		}
		return s, c, k
	}
	served, class, call := declare(0)
	old, oldClass, oldCall := declare(50)
	w := netlooptest.New(t, anyGame{served, func(r *netloop.Room) error {
		r.OnStart(func(tick *netloop.Tick) { class.Spawn(tick, state{Score: 7}) })
		call.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m message) (sum, error) { return sum{int64(m.Amount)}, nil })
		return nil
	}})
	c := enter(t, w, old, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
	server, err := netloop.New(netloop.Config{}, anyGame{served, func(*netloop.Room) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	tables, err := inside.Netloop.Server(server).Handler.Tables(inside.Netloop.Schema(old).Hello())
	if err != nil || len(tables) > 256<<10 {
		t.Errorf("the tables take %d bytes: %v", len(tables), err)
	}
	t.Logf("the tables take %d bytes", len(tables))
	var answer int64
	client.Ask(c, oldCall, message{Amount: 9}, func(_ *netloop.Tick, s sum, _ error) { answer = s.Sum })
	w.Step(60)
	score := int32(0)
	w.Look(c, func(tick *netloop.Tick) {
		for o := range oldClass.All(tick) {
			score += o.State().Score
		}
	})
	if answer != 9 || score != 7 {
		t.Errorf("it was answered %d and sees %d", answer, score)
	}
	agree(t, w, c)
}

// TestOnlyAnotherFingerprintIsToldTheTables asks the server's handler as the transport does.
func TestOnlyAnotherFingerprintIsToldTheTables(t *testing.T) {
	s, err := netloop.New(netloop.Config{}, newHarbour())
	if err != nil {
		t.Fatal(err)
	}
	h := inside.Netloop.Server(s).Handler
	hello := inside.Netloop.Schema(newHarbour().schema).Hello()
	if tables, err := h.Tables(hello); err != nil || tables != nil {
		t.Errorf("the same schema: %d bytes, %v", len(tables), err)
	}
	for _, fingerprint := range [][]byte{nil, {1, 2, 3}} {
		hello.Fingerprint = fingerprint
		if tables, err := h.Tables(hello); err != nil || len(tables) == 0 {
			t.Errorf("another: %d bytes, %v", len(tables), err)
		}
	}
	hello.Major++
	if tables, err := h.Tables(hello); err == nil || tables != nil {
		t.Errorf("another major version: %d bytes", len(tables))
	}
}

// anyGame is a game of any schema.
type anyGame struct {
	schema *netloop.Schema
	open   func(*netloop.Room) error
}

func (g anyGame) Schema() *netloop.Schema    { return g.schema }
func (g anyGame) Open(r *netloop.Room) error { return g.open(r) }

func TestSchemaTooLargeForItsTablesPanics(t *testing.T) {
	s := netloop.NewSchema("endless", 1, 0)
	for i := range 6000 {
		netloop.NewRPC[text](s, strings.Repeat("x", 50)+strconv.Itoa(i))
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), `schema "endless" is too large`) {
			t.Errorf("it says %v", v)
		}
	}()
	inside.Netloop.Schema(s)
}

// FuzzAdapt: whatever tables a server sends, the client adapts or has a typed error, and what
// the tables make it decode harms nothing.
func FuzzAdapt(f *testing.F) {
	opened := inside.Netloop.Schema(newHarbour().schema)
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
