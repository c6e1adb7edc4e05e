package e2e_test

import (
	"os"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// The game of most tests of this package. Each test adds its parts by a script.
var (
	schema = netloop.NewSchema("test", 1, 0)
	things = netloop.NewClass[thing](schema, "thing")
	notes  = netloop.NewClass[note](schema, "note")
	echo   = netloop.NewRPC[text](schema, "echo", netloop.AtStage(netloop.Update,
		netloop.Initialization, netloop.EarlyUpdate, netloop.FixedUpdate, netloop.PreUpdate, netloop.PreLateUpdate, netloop.PostLateUpdate))
	told    = netloop.NewRPC[text](schema, "told", netloop.AtStage(netloop.PreUpdate, netloop.PostLateUpdate))
	loose   = netloop.NewRPC[text](schema, "loose", netloop.Unreliable())
	late    = netloop.NewRPC[text](schema, "late", netloop.AtStage(netloop.Initialization), netloop.LateDrop())
	add     = netloop.NewCall[pair, sum](schema, "add")
	spawned = netloop.NewRPC[announcement](schema, "spawned")
	bulk    = netloop.NewRPC[parcel](schema, "bulk")
	quick   = netloop.NewCall[pair, sum](schema, "quick", netloop.Timeout(time.Second))
	cheer   = netloop.NewRPC[text](schema, "cheer", netloop.ForSpectators())
)

type thing struct {
	N     int32
	X     float32 `net:"quant=1/16"`
	Tags  [2]uint8
	Other netloop.Ref[thing]
	Until netloop.Deadline
}

type note struct {
	Text string  `net:"max=32"`
	List []int16 `net:"max=8"`
}

type text struct {
	S string `net:"max=64"`
	N uint64
}

type announcement struct {
	Thing netloop.Ref[thing]
	N     uint64
}

type parcel struct {
	N uint64
	B []byte `net:"max=16000"`
}
type pair struct{ A, B int64 }
type sum struct{ Sum int64 }

// script is a game made of one function.
type script func(r *netloop.Room)

func (script) Schema() *netloop.Schema      { return schema }
func (s script) Open(r *netloop.Room) error { s(r); return nil }

// game is a game with the given schema, and a script or none.
type game struct {
	schema *netloop.Schema
	script
}

func (g game) Schema() *netloop.Schema { return g.schema }

func (g game) Open(r *netloop.Room) error {
	if g.script != nil {
		g.script(r)
	}
	return nil
}

// open makes a world with a scripted game.
func open(t *testing.T, s script, o ...netlooptest.Option) *netlooptest.World {
	t.Helper()
	return netlooptest.New(t, s, o...)
}

// play joins a client and steps until it plays.
func play(t *testing.T, w *netlooptest.World, l netlooptest.Link) *client.Client {
	t.Helper()
	c := w.Join("", nil, l)
	w.Until(600, func() bool {
		if closed := c.Closed(); closed != nil {
			t.Fatalf("the client was closed: %v", closed)
		}
		return c.State().Phase == client.Playing
	})
	return c
}

// perfect is a link without delay; bad has delay, jitter, loss, reordering and duplicates.
var (
	perfect netlooptest.Link
	bad     = netlooptest.Link{Delay: 40 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.1}
)

// verifyOnly skips a test that depends on the machine's timing unless `make verify` runs it.
func verifyOnly(t *testing.T) {
	t.Helper()
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
}

// look returns a client's objects of a class, in the order of ids.
func look[S any](w *netlooptest.World, c *client.Client, k *netloop.Class[S]) []S {
	var all []S
	w.Look(c, func(t *netloop.Tick) {
		for o := range k.All(t) {
			all = append(all, o.State())
		}
	})
	return all
}
