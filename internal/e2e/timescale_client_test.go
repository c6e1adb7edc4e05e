package e2e_test

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// stretch is a section of scaled time, from a game time on, in exact fractions.
type stretch struct {
	from     time.Duration
	sum      *big.Rat // scaled time at its start
	num, den int64
}

type history []stretch

// at returns the scaled time at a game time within or after the last stretch.
func (h history) at(game time.Duration) time.Duration {
	r := h[len(h)-1].exact(game)
	return time.Duration(new(big.Int).Div(r.Num(), r.Denom()).Int64())
}

func (s stretch) exact(game time.Duration) *big.Rat {
	r := big.NewRat(s.num, s.den)
	return r.Add(s.sum, r.Mul(r, new(big.Rat).SetInt64(int64(game-s.from))))
}

// scaledWorld is a room with random changes of its scale.
type scaledWorld struct {
	*netlooptest.World
	past history
	rnd  *rand.Rand
	obj  *netloop.Object[thing]
}

func newScaledWorld(t *testing.T, seed uint64) *scaledWorld {
	w := &scaledWorld{past: history{{0, new(big.Rat), 1, 1}}, rnd: rand.New(rand.NewPCG(seed, 9))}
	w.World = open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { w.obj = things.Spawn(tick, thing{}) })
	}, netlooptest.Seed(seed))
	return w
}

// turn changes the scale between two ticks.
func (w *scaledWorld) turn(num, den int) {
	w.Tick(func(tick *netloop.Tick) {
		tick.Room().SetTimeScale(tick, num, den)
		last := w.past[len(w.past)-1]
		w.past = append(w.past, stretch{tick.GameTime(), last.exact(tick.GameTime()), int64(num), int64(den)})
	})
}

// some changes the scale at times, stalls, and returns the last scale.
func (w *scaledWorld) some(ticks int) (num, den int) {
	for range ticks {
		if w.rnd.IntN(4) == 0 {
			den = 1 + w.rnd.IntN(9)
			num = w.rnd.IntN(3 * den)
			w.turn(num, den)
		}
		if w.rnd.IntN(20) == 0 {
			w.Spend(time.Duration(w.rnd.IntN(400)) * time.Millisecond)
		}
		w.Step(1)
	}
	num, den = w.rnd.IntN(2), 3
	w.turn(num, den)
	return num, den
}

func TestClientsSeeTheServersScaledTimeOverABadLink(t *testing.T) {
	seeds.Each(t, 4, func(t *testing.T, seed uint64) {
		w := newScaledWorld(t, seed)
		clients := []*client.Client{play(t, w.World, bad), play(t, w.World, perfect)}
		same := func(when string) {
			t.Helper()
			for i, c := range clients {
				for range 5 {
					w.Step(1)
					w.Look(c, func(tick *netloop.Tick) {
						if got, want := tick.ScaledTime(), w.past.at(tick.GameTime()); got != want {
							t.Fatalf("seed %d, client %d, %s: scaled time %v at %v, the server's is %v", seed, i, when, got, tick.GameTime(), want)
						}
					})
				}
			}
		}
		w.Step(60)
		same("before any change")
		for range 3 {
			w.some(40)
			w.Step(120)
			same("a second or two after the last change")
		}
		joined := w.Join("", nil, netlooptest.Link{Delay: 100 * time.Millisecond})
		// The client's first frame comes before the first packet.
		if w.Until(60, func() bool { return joined.ID() != 0 }); true {
			w.Look(joined, func(tick *netloop.Tick) {
				if num, den := tick.TimeScale(); den != 3 && num != 0 {
					t.Errorf("seed %d: a new client has the scale %d/%d", seed, num, den)
				}
			})
		}
		clients = append(clients, joined)
		w.Step(60)
		same("after another has joined")
		w.Cut(clients[0])
		w.some(60)
		w.Heal(clients[0])
		w.Step(300)
		same("after a black hole")
	})
}

func TestDeadlinesInScaledTimeCountDownOnClients(t *testing.T) {
	w := newScaledWorld(t, 1)
	c := play(t, w.World, bad)
	w.turn(1, 2)
	w.Tick(func(tick *netloop.Tick) { w.obj.Edit(tick).Until = tick.InScaled(5 * time.Second) })
	w.Step(120)
	left := func() (left, server time.Duration) {
		w.Look(c, func(tick *netloop.Tick) {
			for o := range things.All(tick) {
				left = o.State().Until.Left(tick)
				server = 5*time.Second - (w.past.at(tick.GameTime()) - w.past[1].from)
			}
		})
		return left, server
	}
	if got, want := left(); got != want || got > 4100*time.Millisecond || got < 3900*time.Millisecond {
		t.Errorf("%v remain after 2 s at half the speed, want %v", got, want)
	}
	w.turn(0, 1)
	w.Step(60)
	before, want := left()
	w.Step(600)
	if after, _ := left(); before != want || after != before {
		t.Errorf("%v remain, and %v after a pause of 10 s, want %v", before, after, want)
	}
}

// A client's systems and timers follow the server's scale.
func TestScaledSystemsAndTimersOfAClient(t *testing.T) {
	w := newScaledWorld(t, 2)
	c := play(t, w.World, perfect)
	calls, fired := 0, 0
	var game, scaled time.Duration
	c.On(netloop.Update, "pulse", func(*netloop.Tick) { calls++ }, netloop.Every(100*time.Millisecond, netloop.Scaled()))
	c.On(netloop.PreUpdate, "set", func(tick *netloop.Tick) {
		if game == 0 {
			tick.AfterFuncScaled(time.Second, func(*netloop.Tick) { fired++ })
		}
		game, scaled = game+tick.Delta(), scaled+tick.ScaledDelta()
	})
	w.Step(30)
	if calls < 4 || calls > 6 || scaled != game {
		t.Errorf("%d calls in half a second, scaled time %v of %v", calls, scaled, game)
	}
	w.turn(0, 1)
	w.Step(10)
	before, at := calls, scaled
	if w.Step(600); calls != before || scaled != at || fired != 0 {
		t.Errorf("%d calls, %v and %d timers in a pause", calls-before, scaled-at, fired)
	}
	w.turn(2, 1)
	if w.Step(30); calls < before+8 || calls > before+11 || fired != 1 {
		t.Errorf("%d calls in a second at twice the speed, %d timers", calls-before, fired)
	}
	if c.Closed() != nil {
		t.Error(c.Closed())
	}
}

// A replay diverges in the tick in which it sets another scale, also without a client.
func TestReplayWithAnotherScaleDiverges(t *testing.T) {
	num := 1
	game := script(func(r *netloop.Room) {
		r.On(netloop.Update, "slow", func(tick *netloop.Tick) {
			if tick.Number() == 5 {
				r.SetTimeScale(tick, num, 2)
			}
		})
	})
	var file bytes.Buffer
	netlooptest.New(t, game, netlooptest.Record(&file)).Step(10)
	for _, num = range []int{1, 0} {
		p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = p.Step()
		}
		var d *netloop.Divergence
		if diverged := errors.As(err, &d); diverged != (num == 0) || diverged && d.Tick != 5 {
			t.Errorf("with %d/2: %v", num, err)
		}
	}
}
