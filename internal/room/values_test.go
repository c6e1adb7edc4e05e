package room_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/netloop/netloop"
)

var nan32 = float32(math.NaN())

// In a room they are counted where an operator looks, and cost nobody a tick.
func TestValuesThatDoNotFitAreCounted(t *testing.T) {
	type odd struct {
		F float32
		S string `net:"max=2"`
	}
	s := netloop.NewSchema("odd", 1, 0)
	k := netloop.NewClass[odd](s, "odd")
	b := newBareOf(t, netloop.Config{}, oddGame{s, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { k.Spawn(tick, odd{nan32, "long"}) })
	}})
	for range 60 { // as often as plain counters go to the metrics
		b.step()
	}
	if line := fmt.Sprintf("netloop_clamped_values_total %d", 2); !b.scraped(line) {
		t.Errorf("the scrape lacks %q", line)
	}
}

type oddGame struct {
	schema *netloop.Schema
	open   func(*netloop.Room)
}

func (g oddGame) Schema() *netloop.Schema    { return g.schema }
func (g oddGame) Open(r *netloop.Room) error { g.open(r); return nil }
