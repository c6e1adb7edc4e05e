package netloop_test

import (
	"time"

	"github.com/netloop/netloop"
)

type (
	Asteroid  struct{ X float64 }           // replicated
	Hourglass struct{}                      // a player has found one
	Truce     struct{ Agreed bool }         // and then the asteroids are disabled
	Bomb      struct{ At netloop.Deadline } // replicated
)

var (
	skySchema  = netloop.NewSchema("sky", 1, 0)
	asteroids  = netloop.NewClass[Asteroid](skySchema, "asteroid")
	bombs      = netloop.NewClass[Bomb](skySchema, "bomb")
	hourglass  = netloop.NewRPC[Hourglass](skySchema, "hourglass")
	truce      = netloop.NewRPC[Truce](skySchema, "truce")
	slowMotion = 2 * time.Second
)

type skyGame struct{}

func (skyGame) Schema() *netloop.Schema { return skySchema }

func (skyGame) Open(r *netloop.Room) error {
	// An hourglass is slow motion for two seconds of the players' time. Another one during that
	// time restarts it.
	var over netloop.Timer
	hourglass.Handle(r, func(t *netloop.Tick, _ *netloop.Client, _ Hourglass) error {
		r.SetTimeScale(t, 1, 2)
		over.Stop()
		over = t.AfterFunc(slowMotion, func(t *netloop.Tick) { r.SetTimeScale(t, 1, 1) })
		return nil
	})

	// Movement by ScaledDelta has half the speed then. Clients count down to the bomb's deadline at
	// half the speed too.
	r.OnStart(func(t *netloop.Tick) {
		asteroids.Spawn(t, Asteroid{})
		bombs.Spawn(t, Bomb{At: t.InScaled(10 * time.Second)})
	})
	r.On(netloop.FixedUpdate, "asteroids.move", func(t *netloop.Tick) {
		for a := range asteroids.All(t) {
			a.Edit(t).X += 8 * t.ScaledDelta().Seconds()
		}
	}, netloop.InSystemGroup("asteroids"))
	r.On(netloop.Update, "asteroids.spawn", func(t *netloop.Tick) { asteroids.Spawn(t, Asteroid{}) },
		netloop.InSystemGroup("asteroids"), netloop.Every(3*time.Second, netloop.Scaled(), netloop.CatchUp(1)))

	// A truce stops the asteroids alone, and the time until the next of them.
	group := r.Group("asteroids")
	truce.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m Truce) error {
		if m.Agreed {
			group.Disable()
		} else {
			group.Enable()
		}
		return nil
	})
	return nil
}

// Slow motion for two seconds, and a group that is disabled.
func ExampleRoom_SetTimeScale() {
	if _, err := netloop.New(netloop.Config{}, skyGame{}); err != nil {
		panic(err)
	}
}
