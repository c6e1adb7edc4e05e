package netloop

import (
	"fmt"
	"math"
	"testing"
)

var nan32 = float32(math.NaN())

// In a room they are counted where an operator looks, and cost nobody a tick.
func TestValuesThatDoNotFitAreCounted(t *testing.T) {
	type odd struct {
		F float32
		S string `net:"max=2"`
	}
	s := NewSchema("odd", 1, 0)
	k := NewClass[odd](s, "odd")
	server, err := New(Config{}, oddGame{s, func(r *Room) {
		r.OnStart(func(tick *Tick) { k.Spawn(tick, odd{nan32, "long"}) })
	}})
	if err != nil {
		t.Fatal(err)
	}
	b := &bare{t: t, s: server}
	for range 60 { // as often as plain counters go to the metrics
		b.step()
	}
	if line := fmt.Sprintf("netloop_clamped_values_total %d", 2); !b.scraped(line) {
		t.Errorf("the scrape lacks %q", line)
	}
}

type oddGame struct {
	schema *Schema
	open   func(*Room)
}

func (g oddGame) Schema() *Schema    { return g.schema }
func (g oddGame) Open(r *Room) error { g.open(r); return nil }
