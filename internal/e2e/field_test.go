package e2e_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

// TestFieldsDescribeAClassOnEachSide: interpolation is the client's own setting, so a build with
// other settings has the same fingerprint and plays.
func TestFieldsDescribeAClassOnEachSide(t *testing.T) {
	type serverState struct {
		Pos [2]float32 `net:"quant=1/8,threshold=0.5,interval=1s"`
		Yaw float32    `net:"lerp=angle,read=owner"`
		Bag []int16    `net:"weight=4"`
	}
	type clientState struct {
		Pos [2]float32 `net:"quant=1/8"`
		Yaw float32    `net:"lerp=none,read=owner"`
		Bag []int16
	}
	a, b := netloop.NewSchema("field", 1, 0), netloop.NewSchema("field", 1, 0)
	server, own := netloop.NewClass[serverState](a, "it"), netloop.NewClass[clientState](b, "it")
	want := []netloop.Field{
		{Name: "Pos[0]", Type: "float32", Lerp: netloop.LerpLinear, Interval: time.Second, Threshold: 0.5, Weight: 1},
		{Name: "Pos[1]", Type: "float32", Lerp: netloop.LerpLinear, Interval: time.Second, Threshold: 0.5, Weight: 1},
		{Name: "Yaw", Type: "float32", Read: "owner", Lerp: netloop.LerpAngle, Weight: 1},
		{Name: "Bag", Type: "slice", Weight: 4},
	}
	if got := server.Fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server's fields are %+v", got)
	}
	if got := own.Fields(); got[0].Interval != 0 || got[2].Lerp != netloop.LerpNone {
		t.Errorf("the client's fields are %+v", got)
	}
	w := netlooptest.New(t, game{schema: a})
	c := w.JoinAs(client.Config{Schema: b}, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	w.Tick(func(tick *netloop.Tick) { server.Spawn(tick, serverState{Yaw: 2}, netloop.OwnedBy(c.ID())) })
	w.Step(2)
	w.Look(c, func(tick *netloop.Tick) {
		n := 0
		for o := range own.All(tick) {
			if n++; o.State().Yaw != 2 {
				t.Errorf("the client has %+v", o.State())
			}
		}
		if n != 1 {
			t.Errorf("the client has %d objects", n)
		}
	})
}

// follow runs a game with one client over a bad link, makes one change per tick, and compares the
// client's final state with the last change.
func follow[S any](t *testing.T, first S, changes []func(*S), same func(server, client S) bool, options ...netlooptest.Option) {
	t.Helper()
	schema := netloop.NewSchema("types", 1, 0)
	class := netloop.NewClass[S](schema, "it")
	w := netlooptest.New(t, game{schema: schema}, options...)
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
	// Values beyond the range become its nearest bound.
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
	// A message that cannot be encoded becomes nil at the client, not a stale value.
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
	w := netlooptest.New(t, game{schema: schema})
	c := w.JoinAs(client.Config{Schema: old}, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Closed })
	if text := fmt.Sprint(c.State()); !strings.Contains(text, `class "it": field Last is proto arena.v1.Said max=256 on the server, but proto arena.v1.Say max=256 on the client`) {
		t.Error(text)
	}
}

// The documentation of Class lists every tag that NewClass accepts, with an example and its
// values.
func TestTheDocsOfClassDescribeEveryTag(t *testing.T) {
	b, err := os.ReadFile("../../class.go")
	if err != nil {
		t.Fatal(err)
	}
	var said string
	func() {
		defer func() { said, _ = recover().(string) }()
		type state struct {
			A int32 `net:"nope=1"`
		}
		netloop.NewClass[state](netloop.NewSchema("bad", 1, 0), "bad")
	}()
	_, list, ok := strings.Cut(said, "the keys are ")
	list, _, end := strings.Cut(list, ", or the whole tag")
	keys := strings.Split(strings.Replace(list, " and ", ", ", 1), ", ")
	if !ok || !end || len(keys) < 12 {
		t.Fatalf("%d keys in %q", len(keys), said)
	}
	if !regexp.MustCompile("//.*`net:\"-\"`").Match(b) {
		t.Error("there is no example of a field that does not travel")
	}
	for _, key := range keys {
		if !regexp.MustCompile("//.*`net:\"[^`]*\\b" + key + "[=\"]").Match(b) {
			t.Errorf("there is no example of %s", key)
		}
		if !regexp.MustCompile(`(?m)^//\t` + key + ` {2,}\S`).Match(b) {
			t.Errorf("the values of %s are not documented", key)
		}
	}
}

// Each field type reaches a client over a bad link, with many changes.
func TestEveryTypeReachesTheClient(t *testing.T) {
	type mood uint8
	type vec struct{ X, Y float32 }
	type all struct {
		Bool  bool
		I8    int8
		I16   int16
		I32   int32
		I64   int64
		Int   int
		U8    uint8
		U16   uint16
		U32   uint32
		U64   uint64
		Uint  uint
		F32   float32
		F64   float64
		Step  float32 `net:"quant=1/8,range=-50:50"`
		Fine  float64 `net:"quant=0.125"`
		Text  string
		Raw   []byte
		ID    [4]byte
		Mood  mood
		Fixed [3]int16
		Pos   vec
		Rot   [4]float32 `net:"quat=10"`
		Said  *arenav1.Said
		It    netloop.Ref[vec]
		Until netloop.Deadline
		List  []vec                   `net:"max=5"`
		Keyed []struct{ ID, N uint8 } `net:"max=5,key=ID"`
		Map   map[string]int16        `net:"max=5"`
		Set   map[int8]struct{}       `net:"max=5"`
		Notes map[uint8]*arenav1.Said `net:"max=4,each=64"`
		Local int                     `net:"-"`
	}
	var its [2]netloop.Ref[vec]
	var until [2]netloop.Deadline
	schema := netloop.NewSchema("others", 1, 0)
	others := netloop.NewClass[vec](schema, "other")
	netlooptest.New(t, game{schema: schema}).Tick(func(tick *netloop.Tick) {
		for i := range its {
			its[i], until[i] = others.Spawn(tick, vec{}).Ref(), tick.In(time.Duration(1+i)*time.Hour)
		}
	})
	var changes []func(*all)
	for i := range 30 {
		n := i + 1
		changes = append(changes, func(a *all) {
			a.Bool, a.I8, a.I16, a.I32, a.I64, a.Int = n%2 == 1, int8(-n), int16(-300*n), int32(-70_000*n), int64(-n)<<40, -n
			a.U8, a.U16, a.U32, a.U64, a.Uint = uint8(n), uint16(300*n), uint32(70_000*n), uint64(n)<<50, uint(n)
			a.F32, a.F64, a.Step, a.Fine = float32(n)/7, float64(n)/11, float32(n)/8, -float64(n)/8
			a.Text, a.Raw, a.ID = strings.Repeat("é", n), []byte{byte(n), 0}, [4]byte{3: byte(n)}
			a.Mood, a.Fixed, a.Pos = mood(n), [3]int16{1: int16(n)}, vec{float32(n), -1}
			a.Rot = map[bool][4]float32{true: {0, 0, 0, 1}, false: {1, 0, 0, 0}}[n%2 == 0]
			a.Said = &arenav1.Said{Text: strings.Repeat("x", n)}
			a.List = []vec{{float32(n), 0}, {1, 2}}[:1+n%2]
			a.Keyed = []struct{ ID, N uint8 }{{uint8(n), 1}, {7, uint8(n)}}
			a.Map = map[string]int16{"a": int16(n), strings.Repeat("b", n%9): 1}
			a.Set = map[int8]struct{}{int8(n): {}}
			a.Notes = map[uint8]*arenav1.Said{uint8(n): {Name: "n"}}
			a.It, a.Until, a.Local = its[n%2], until[n%2], n
		})
	}
	follow(t, all{}, changes, func(s, c all) bool {
		ok := c.Local == 0 && proto.Equal(s.Said, c.Said) && len(c.Notes) == 1 && proto.Equal(s.Notes[30], c.Notes[30])
		s.Local, s.Said, s.Notes, c.Said, c.Notes = 0, nil, nil, nil, nil
		return ok && s.U8 == 30 && !c.It.IsZero() && reflect.DeepEqual(s, c)
	})
}
