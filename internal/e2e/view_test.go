package e2e_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

type train struct {
	X    float64
	Hops uint8 `net:"teleport"`
}

var (
	railway = netloop.NewSchema("railway", 1, 0)
	trains  = netloop.NewClass[train](railway, "train")
)

// rails is a game with a train that moves by one unit per tick from a given tick on.
type rails struct {
	from   uint64 // the first tick in which it moves
	engine *netloop.Object[train]
}

func (*rails) Schema() *netloop.Schema { return railway }

func (r *rails) Open(room *netloop.Room) error {
	room.OnStart(func(t *netloop.Tick) { r.engine = trains.Spawn(t, train{X: 0}) })
	room.On(netloop.Update, "run", func(t *netloop.Tick) {
		if n := t.Number(); n >= r.from {
			r.engine.Edit(t).X = float64(n - r.from + 1)
		}
	})
	return nil
}

// drawings are a client's drawn positions of the train, by frame.
type drawings struct {
	worst, best float64 // speeds, relative to the real one
	frames      int
	last        float64
	back        int
	uneven      int // frames with a speed error beyond the slew
}

// draw draws the train in each frame from now on.
func draw(c *client.Client, rate float64) *drawings {
	s := &drawings{worst: 1, best: 1, last: math.NaN()}
	c.On(netloop.PostLateUpdate, "test.draw", func(t *netloop.Tick) {
		for _, v := range client.Views(c, trains) {
			if moved := v.X - s.last; !math.IsNaN(moved) {
				s.frames++
				speed := moved / (t.Delta().Seconds() * rate)
				s.worst, s.best = min(s.worst, speed), max(s.best, speed)
				if speed < 0.945 || speed > 1.025 {
					s.uneven++
				}
				if moved < 0 {
					s.back++
				}
			}
			s.last = v.X
		}
	})
	return s
}

// Even motion is drawn evenly at any frame rate, for snapshots of each tick or every third.
func TestEvenMotionIsDrawnEvenly(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, fps := range []int{24, 60, 144, 240} {
		for _, every := range []int{1, 3} {
			t.Run(fmt.Sprintf("%dfps/%d", fps, every), func(t *testing.T) {
				w := netlooptest.New(t, &rails{}, netlooptest.Room(netloop.RoomSpec{SendEvery: every}))
				c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond}, netlooptest.FPS(fps))
				client.Interpolate(c, trains)
				w.Until(300, func() bool { return c.State().Phase == client.Playing })
				w.Step(180)
				s := draw(c, 60)
				before := c.Stats()
				w.Step(300)
				after := c.Stats()
				if s.worst < 0.99 || s.best > 1.01 || s.back > 0 || s.frames < 4*fps || after.Starved != before.Starved {
					t.Errorf("%d frames, speeds from %.4f to %.4f, %d times back", s.frames, s.worst, s.best, s.back)
				}
			})
		}
	}
}

// With 20 ms of jitter and 5 % loss, at most 1 % of the frames lack a snapshot and are uneven,
// with the necessary delay, and no frame moves back.
func TestFramesHaveBothSnapshotsOverABadLink(t *testing.T) {
	seeds.OneGoroutine(t)
	bad := netlooptest.Link{Delay: 65 * time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 0.05}
	for _, fps := range []int{24, 60, 144, 240} {
		for _, c := range []struct {
			every int
			most  time.Duration // delay
		}{{1, 150 * time.Millisecond}, {3, 210 * time.Millisecond}} {
			t.Run(fmt.Sprintf("%dfps/%d", fps, c.every), func(t *testing.T) {
				w := netlooptest.New(t, &rails{}, netlooptest.Room(netloop.RoomSpec{SendEvery: c.every}))
				cl := w.Join("", nil, bad, netlooptest.FPS(fps))
				client.Interpolate(cl, trains)
				w.Until(300, func() bool { return cl.State().Phase == client.Playing })
				w.Step(300)
				s := draw(cl, 60)
				before := cl.Stats()
				w.Step(1800)
				after := cl.Stats()
				starved, drawn := after.Starved-before.Starved, after.Drawn-before.Drawn
				if drawn < uint64(29*fps) || starved*100 > drawn || s.uneven*50 > s.frames || s.back > 0 || after.ViewJumps > 0 || after.ViewDelay > c.most {
					t.Errorf("%d of %d frames lack a snapshot, %d are uneven, %d times back, %d jumps, %v behind", starved, drawn, s.uneven, s.back, after.ViewJumps, after.ViewDelay)
				}
			})
		}
	}
}
