package netloop_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop"
)

var (
	golf  = netloop.NewSchema("golf", 1, 0)
	holes = netloop.NewCounter(golf, "holes", "Balls that were holed.", netloop.ByLabel("course", "links", "park"))
	balls = netloop.NewGauge(golf, "balls", "Balls that roll.")
	drive = netloop.NewHistogram(golf, "drive_meters", "Length of drives.", []float64{50, 100, 200, 300})
)

type golfGame struct{}

func (golfGame) Schema() *netloop.Schema { return golf }

func (golfGame) Open(r *netloop.Room) error {
	r.On(netloop.Update, "golf.hole", func(t *netloop.Tick) {
		holes.With("links").Add(t, 1)
		drive.Observe(t, 212.5)
	}, netloop.Every(20*time.Second))
	r.On(netloop.Update, "golf.balls", func(t *netloop.Tick) { balls.Set(t, 3) })
	return nil
}

// A game declares its metrics beside its classes and messages. They are among the series of
// /metrics, and here also in a registry of the program.
func ExampleNewCounter() {
	registry := prometheus.NewRegistry()
	if _, err := netloop.New(netloop.Config{Registerer: registry}, golfGame{}); err != nil {
		panic(err)
	}
	families, err := registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "netloop_game_") {
			fmt.Println(f.GetName(), len(f.GetMetric()), f.GetHelp())
		}
	}
	// Output:
	// netloop_game_balls 1 Balls that roll.
	// netloop_game_drive_meters 1 Length of drives.
	// netloop_game_holes_total 2 Balls that were holed.
}
