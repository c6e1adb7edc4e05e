package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/netlooptest"
)

// TestGoldenFingerprint compares the schema of docs/WIRE.md with its text and fingerprint, on
// which clients in other languages depend.
func TestGoldenFingerprint(t *testing.T) {
	type tag struct {
		ID   uint16
		Name string `net:"max=8"`
	}
	type pos struct {
		X    float32 `net:"quant=1/256"`
		Tags [2]tag
	}
	type move struct{ DX, DY int8 }
	type who struct{ ID netloop.Ref[pos] }
	type called struct {
		Name string `net:"max=8"`
	}
	s := netloop.NewSchema("wire", 3, 7)
	netloop.NewClass[pos](s, "pos")
	netloop.NewRPC[move](s, "move", netloop.Unreliable(), netloop.AtStage(netloop.FixedUpdate, netloop.Update))
	netloop.NewCall[who, called](s, "name")
	netloop.NewRPC[*arenav1.Say](s, "say")
	netloop.NewInput[struct {
		Turn int8
		Fire bool
	}](s, nil)
	got := hex.EncodeToString(bridge.Netloop.Schema(s).Hello().GetFingerprint())

	block := func(name string) string { return golden.Text(t, "../../docs/WIRE.md", name) }
	if want := strings.Join(strings.Fields(block("schema-fingerprint")), ""); got != want {
		t.Errorf("the fingerprint is %s, and docs/WIRE.md has %s", got, want)
	}
	if sum := sha256.Sum256([]byte(block("schema-text"))); hex.EncodeToString(sum[:]) != got {
		t.Errorf("the text of docs/WIRE.md has the fingerprint %x, not %s", sum, got)
	}
}

func TestOtherSchemasAreRefusedByName(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	other := func(name string, major int, declare func(*netloop.Schema)) *netloop.Schema {
		s := netloop.NewSchema(name, major, 0)
		declare(s)
		return s
	}
	type otherThing struct{ N int16 }
	for _, c := range []struct {
		schema *netloop.Schema
		want   string
	}{
		{other("elsewhere", 1, func(*netloop.Schema) {}), `"elsewhere"`},
		{other("test", 2, func(*netloop.Schema) {}), "major version 1"},
		{other("test", 1, func(s *netloop.Schema) { netloop.NewClass[otherThing](s, "thing") }), "field N"},
	} {
		refused := w.JoinAs(client.Config{Schema: c.schema}, perfect)
		w.Until(60, func() bool { return refused.Closed() != nil })
		if got := refused.Closed(); got.Code != netloop.CodeSchemaMismatch || !strings.Contains(got.Text, c.want) {
			t.Errorf("got %v, which does not contain %s", got, c.want)
		}
	}
	lost := w.JoinAs(client.Config{Room: "attic"}, perfect)
	w.Until(60, func() bool { return lost.Closed() != nil })
	if lost.Closed().Code != netloop.CodeRoomUnknown {
		t.Errorf("got %v", lost.Closed())
	}
}

// TestALargeSchemaFitsTheHandshake matches 500 methods and 100 classes with a build that lacks 50
// of them, and calls the last one.
func TestALargeSchemaFitsTheHandshake(t *testing.T) {
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
	w := netlooptest.New(t, game{served, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { class.Spawn(tick, state{Score: 7}) })
		call.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m message) (sum, error) { return sum{int64(m.Amount)}, nil })
	}})
	c := enter(t, w, old, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
	server, err := netloop.New(netloop.Config{}, game{schema: served})
	if err != nil {
		t.Fatal(err)
	}
	tables, err := bridge.Netloop.Server(server).Handler.Tables(bridge.Netloop.Schema(old).Hello())
	if err != nil || len(tables) > 256<<10 {
		t.Errorf("the tables take %d bytes: %v", len(tables), err)
	}
	t.Logf("the tables take %d bytes", len(tables))
	var answer int64
	client.Call(c, oldCall, message{Amount: 9}, func(_ *netloop.Tick, s sum, _ error) { answer = s.Sum })
	w.Step(60)
	score := int32(0)
	w.Look(c, func(tick *netloop.Tick) {
		for o := range oldClass.All(tick) {
			score += o.State().Score
		}
	})
	if answer != 9 || score != 7 {
		t.Errorf("it got the answer %d and has %d", answer, score)
	}
	agree(t, w, c)
}

// TestTablesAreSentOnlyForAnotherFingerprint calls the server's handler directly.
func TestTablesAreSentOnlyForAnotherFingerprint(t *testing.T) {
	s, err := netloop.New(netloop.Config{}, newServerBuild())
	if err != nil {
		t.Fatal(err)
	}
	h := bridge.Netloop.Server(s).Handler
	hello := bridge.Netloop.Schema(newServerBuild().schema).Hello()
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

func TestSchemaTooLargeForItsTablesPanics(t *testing.T) {
	s := netloop.NewSchema("endless", 1, 0)
	for i := range 6000 {
		netloop.NewRPC[text](s, strings.Repeat("x", 50)+strconv.Itoa(i))
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), `schema "endless" is too large`) {
			t.Errorf("the panic is %v", v)
		}
	}()
	bridge.Netloop.Schema(s)
}

func TestTwoServersShareASchema(t *testing.T) {
	var worlds [2]*netlooptest.World
	var sees [2]int32
	for i := range worlds {
		worlds[i] = open(t, func(r *netloop.Room) {
			r.OnStart(func(tick *netloop.Tick) { things.Spawn(tick, thing{N: int32(i + 1)}) })
		})
	}
	for i, w := range worlds {
		c := play(t, w, perfect)
		sees[i] = look(w, c, things)[0].N
	}
	if sees != [2]int32{1, 2} {
		t.Errorf("the clients see %v", sees)
	}
}
