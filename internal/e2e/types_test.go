package e2e_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

// toy is a game of one schema and nothing else.
type toy struct{ schema *netloop.Schema }

func (p toy) Schema() *netloop.Schema { return p.schema }

func (p toy) Open(*netloop.Room) error { return nil }

// follow runs a game with one client over a bad link, makes the changes, one per tick, and
// compares what the client then has with what the last one left.
func follow[S any](t *testing.T, first S, changes []func(*S), same func(server, client S) bool, options ...netlooptest.Option) {
	t.Helper()
	schema := netloop.NewSchema("types", 1, 0)
	class := netloop.NewClass[S](schema, "it")
	w := netlooptest.New(t, toy{schema}, options...)
	c := w.JoinAs(client.Config{Schema: schema}, bad)
	var o *netloop.Object[S]
	w.Tick(func(tick *netloop.Tick) { o = class.Spawn(tick, first) })
	w.Until(600, func() bool { return c.State().Phase == client.Playing })
	check := func() bool {
		ok := false
		w.Look(c, func(tick *netloop.Tick) {
			for twin := range class.All(tick) {
				ok = same(o.State(), twin.State())
			}
		})
		return ok
	}
	for _, change := range changes {
		w.Tick(func(tick *netloop.Tick) { change(o.Edit(tick)) })
		w.Step(2)
	}
	w.Until(600, check)
}

func TestQuantisedTypesReachTheClient(t *testing.T) {
	type vec3 struct{ X, Y, Z float32 }
	type body struct {
		Pos vec3 `net:"quant=1/8,range=-100:100"`
		Rot struct {
			W float32
			V vec3
		} `net:"quat=12"`
	}
	var changes []func(*body)
	for i := range 20 {
		changes = append(changes, func(b *body) {
			b.Pos.X += 1
			sin, cos := math.Sincos(float64(i) / 10)
			b.Rot.W, b.Rot.V.Z = float32(cos), float32(sin)
		})
	}
	follow(t, body{}, changes, func(s, c body) bool {
		return s.Pos == c.Pos && math.Abs(float64(s.Rot.W-c.Rot.W)) < 1e-3 && math.Abs(float64(s.Rot.V.Z-c.Rot.V.Z)) < 1e-3
	})
	// Out of its range it is the nearest in it.
	follow(t, body{}, []func(*body){func(b *body) { b.Pos.Z = 1000 }}, func(s, c body) bool { return s.Pos.Z == 1000 && c.Pos.Z == 100 }, netlooptest.AllowMisfits())
}

func TestListsReachTheClient(t *testing.T) {
	type card struct {
		ID    uint16
		Value int8
	}
	type hand struct {
		Cards []card              `net:"max=20,key=ID"`
		Score map[string]int32    `net:"each=8,max=20"`
		Seen  map[uint16]struct{} `net:"max=30"`
		Moves []int16
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var changes []func(*hand)
	for i := range 60 {
		changes = append(changes, func(h *hand) {
			if h.Score == nil {
				h.Score = make(map[string]int32)
			}
			h.Score[strconv.Itoa(rng.IntN(12))]++
			delete(h.Score, strconv.Itoa(rng.IntN(12)))
			h.Moves = append(h.Moves, int16(i))[max(0, len(h.Moves)-10):]
			h.Cards = append(h.Cards, card{ID: uint16(i)})
			rng.Shuffle(len(h.Cards), func(i, j int) { h.Cards[i], h.Cards[j] = h.Cards[j], h.Cards[i] })
			h.Cards = h.Cards[max(0, len(h.Cards)-12):]
			h.Cards[0].Value++
			if h.Seen == nil {
				h.Seen = make(map[uint16]struct{})
			}
			h.Seen[h.Cards[0].ID] = struct{}{}
			delete(h.Seen, uint16(i-20))
		})
	}
	follow(t, hand{Moves: []int16{1}}, changes, func(s, c hand) bool { return len(s.Cards) == 12 && reflect.DeepEqual(s, c) })
}

func TestProtobufMessagesInStateReachTheClient(t *testing.T) {
	type note struct {
		Last *arenav1.Said           `net:"max=64"`
		All  map[uint8]*arenav1.Said `net:"max=4,each=64"`
	}
	var changes []func(*note)
	for i := range 20 {
		changes = append(changes, func(n *note) {
			if n.Last == nil {
				n.Last, n.All = new(arenav1.Said), make(map[uint8]*arenav1.Said)
			}
			n.Last.Text = strconv.Itoa(i) // In place.
			n.All[uint8(i%4)] = &arenav1.Said{Name: strconv.Itoa(i)}
		})
	}
	same := func(s, c note) bool {
		return proto.Equal(s.Last, c.Last) && maps.EqualFunc(s.All, c.All, func(a, b *arenav1.Said) bool { return proto.Equal(a, b) })
	}
	follow(t, note{}, changes, func(s, c note) bool { return c.Last.GetText() == "19" && same(s, c) })
	follow(t, note{Last: &arenav1.Said{Name: "x"}}, []func(*note){func(n *note) { n.Last = nil }}, func(s, c note) bool { return c.Last == nil })
	// What cannot be encoded is nil there, not a stale value.
	follow(t, note{Last: &arenav1.Said{Name: "x"}}, []func(*note){func(n *note) { n.Last.Name = "\xff" }}, func(s, c note) bool { return c.Last == nil }, netlooptest.AllowMisfits())
}

func TestOtherProtobufMessageInStateIsRefusedByName(t *testing.T) {
	type noted struct{ Last *arenav1.Said }
	type saying struct {
		Last *arenav1.Say
	}
	schema, old := netloop.NewSchema("types", 1, 0), netloop.NewSchema("types", 1, 0)
	netloop.NewClass[noted](schema, "it")
	netloop.NewClass[saying](old, "it")
	w := netlooptest.New(t, toy{schema})
	c := w.JoinAs(client.Config{Schema: old}, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Closed })
	if text := fmt.Sprint(c.State()); !strings.Contains(text, `class "it": field Last is proto arena.v1.Said max=256 on the server, but proto arena.v1.Say max=256 on the client`) {
		t.Error(text)
	}
}
