package e2e_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// The game of these tests: joggers, which move in scaled time.
var (
	slowMotion = netloop.NewSchema("slow motion", 1, 0)
	strides    = netloop.NewInput(slowMotion, func(last stride, _ int) stride { return last })
	joggers    = netloop.NewClass[jogger](slowMotion, "jogger", netloop.Predicted())
)

type stride struct{ Speed uint8 }

type jogger struct {
	X     float32 `net:"quant=1/256"`
	Speed uint8
}

func (j *jogger) jog(t *netloop.Tick, in stride) {
	j.Speed = in.Speed
	j.X += float32(in.Speed) * float32(t.ScaledDelta().Seconds())
}

// A change of the time scale causes no misprediction: the steps that the client has run ahead of
// it are replayed with the server's scale. A pause stops the own object at the server's position.
func TestAChangeOfTheTimeScaleCausesNoMisprediction(t *testing.T) {
	const ms, speed = time.Millisecond, 100
	for _, rates := range []netloop.RoomSpec{{Rate: netloop.Hz(60)}, {Rate: netloop.Hz(20), FixedRate: netloop.Hz(60)}, {Rate: netloop.Hz(60), FixedRate: netloop.Hz(20)}} {
		seeds.Each(t, 5, func(t *testing.T, seed uint64) {
			var own *netloop.Object[jogger]
			w := netlooptest.New(t, game{slowMotion, func(r *netloop.Room) {
				r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
					own = joggers.Spawn(t, jogger{}, netloop.OwnedBy(c.ID()))
					return nil
				})
				strides.Handle(r, func(t *netloop.Tick, _ *netloop.Client, in stride) { own.Edit(t).jog(t, in) })
			}}, netlooptest.Seed(seed), netlooptest.Room(rates))
			second := int(rates.Rate.Num)
			c := w.Join("", nil, netlooptest.Link{Delay: 75 * ms, Jitter: 2 * ms}, netlooptest.FPS(60))
			client.Inputs(c, strides, func(*netloop.Tick) stride { return stride{Speed: speed} })
			client.Predict(c, joggers, strides, (*jogger).jog)
			w.Step(10 * second)
			for _, scale := range [][2]int{{1, 2}, {0, 1}, {2, 1}, {0, 1}, {1, 3}, {1, 1}} {
				before := c.Stats()
				w.Tick(func(tick *netloop.Tick) { tick.Room().SetTimeScale(tick, scale[0], scale[1]) })
				w.Step(second)
				after := c.Stats()
				if n := after.Prediction.Mispredicted - before.Prediction.Mispredicted; n > after.InputsMissed-before.InputsMissed {
					t.Errorf("seed %d, %v: a change to %d/%d is predicted wrongly %d times", seed, rates.Rate, scale[0], scale[1], n)
				}
				if scale[0] > 0 {
					continue
				}
				w.Look(c, func(tick *netloop.Tick) {
					for o := range joggers.Owned(tick, c.ID()) {
						if now, _ := client.PredictedState(c, o); now.X != own.State().X {
							t.Errorf("seed %d, %v: in a pause the own object is at %v, and on the server at %v", seed, rates.Rate, now.X, own.State().X)
						}
					}
				})
			}
		})
	}
}
