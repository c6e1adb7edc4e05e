package room_test

import (
	"math"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/logging"
)

var nan32 = float32(math.NaN())

// Values that do not fit their fields are counted in the metrics, and do not delay a tick.
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
	for range 60 { // the interval of reports to the metrics
		b.step()
	}
	b.lacks("netloop_clamped_values_total 2")
}

// A test that plays the server receives the findings of the configuration's checks, and the log
// does not.
func TestMisusesAreReportedToATest(t *testing.T) {
	type odd struct {
		S string `net:"max=2"`
	}
	s := netloop.NewSchema("misfit", 1, 0)
	k := netloop.NewClass[odd](s, "odd")
	core, logs := logtest.New(zapcore.ErrorLevel)
	b := newBareOf(t, netloop.Config{CheckValues: true, Log: logging.Slog(zap.New(core))}, oddGame{s, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { k.Spawn(tick, odd{"long"}) })
	}})
	var heard []string
	b.room.Faults.OnMisuse(func(text string) { heard = append(heard, text) })
	b.step()
	if len(heard) != 1 || !strings.Contains(heard[0], "field S of odd 0.1") || logs.Len() != 0 {
		t.Errorf("heard %q, and the log has %v", heard, logs.All())
	}
	b.lacks(`netloop_state_misuses_total{kind="misfit"} 1`)
}

type oddGame struct {
	schema *netloop.Schema
	open   func(*netloop.Room)
}

func (g oddGame) Schema() *netloop.Schema    { return g.schema }
func (g oddGame) Open(r *netloop.Room) error { g.open(r); return nil }
