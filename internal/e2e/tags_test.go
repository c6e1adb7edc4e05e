package e2e_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

// Every tag that NewClass knows is in the documentation of Class, with an example and with what it
// takes.
func TestTheDocsOfClassNameEveryTag(t *testing.T) {
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
		if !regexp.MustCompile("//.*`net:\"[^`]*\\b" + key + "=").Match(b) {
			t.Errorf("there is no example of %s", key)
		}
		if !regexp.MustCompile(`(?m)^//\t` + key + ` {2,}\S`).Match(b) {
			t.Errorf("what %s takes is not said", key)
		}
	}
}

// Every type that a field may have reaches a client over a bad link, changed many times.
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
	netlooptest.New(t, toy{schema}).Tick(func(tick *netloop.Tick) {
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
