package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

var stages = []netloop.Stage{
	netloop.Initialization, netloop.EarlyUpdate, netloop.FixedUpdate, netloop.PreUpdate,
	netloop.Update, netloop.PreLateUpdate, netloop.PostLateUpdate,
}

func TestStagesRunInOrder(t *testing.T) {
	var ran []netloop.Stage
	w := open(t, func(r *netloop.Room) {
		for _, s := range slices.Backward(stages) {
			r.On(s, "test."+s.String(), func(tick *netloop.Tick) { ran = append(ran, tick.Stage()) })
		}
	})
	w.Step(2)
	if want := slices.Concat(stages, stages); !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}

func TestAReplyIsSentInTheFlushOfTheSameTick(t *testing.T) {
	for _, stage := range stages[1:] {
		t.Run(stage.String(), func(t *testing.T) {
			var ran uint64
			w := open(t, func(r *netloop.Room) {
				echo.Handle(r, func(tick *netloop.Tick, from *netloop.Client, m text) error {
					ran = tick.Number()
					if tick.Stage() != stage {
						t.Errorf("ran at %s", tick.Stage())
					}
					told.Send(tick, netloop.To(from.ID()), text{S: m.S, N: tick.Number()})
					return nil
				})
			})
			c := play(t, w, perfect)
			var got text
			client.Handle(c, told, func(_ *netloop.Tick, m text) { got = m })
			client.Send(c, echo, text{S: "hello"}, netloop.RunAt(stage))
			w.Step(1) // The client's frame runs after the server's tick: this one sends.
			if ran != 0 {
				t.Fatal("the server handled an unsent message")
			}
			w.Step(1) // The server handles it and answers; the client's frame gets the answer.
			if got.S != "hello" || got.N != ran {
				t.Errorf("handled at tick %d, but in its frame the client had %+v", ran, got)
			}
		})
	}
}

func TestStateOfPreLateUpdateIsSentInThatTick(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		var o *netloop.Object[thing]
		r.OnStart(func(tick *netloop.Tick) { o = things.Spawn(tick, thing{}) })
		r.On(netloop.PreLateUpdate, "test.edit", func(tick *netloop.Tick) { o.Edit(tick).N = int32(tick.Number()) })
	})
	var clients []*client.Client
	for range 3 {
		clients = append(clients, play(t, w, perfect))
	}
	for range 120 {
		w.Step(1)
		var now int32
		w.Tick(func(tick *netloop.Tick) { now = int32(tick.Number()) })
		for _, c := range clients {
			if seen := look(w, c, things)[0].N; seen != now {
				t.Fatalf("after tick %d was sent, a client has %d", now, seen)
			}
		}
	}
}

// TestMessagesRunBeforeSystems: at every stage, on both sides, the messages of the stage run
// before its systems of any priority.
func TestMessagesRunBeforeSystems(t *testing.T) {
	ran, frame, shown, handled, heard := map[netloop.Stage]uint64{}, uint64(0), map[netloop.Stage]uint64{}, 0, 0
	w := open(t, func(r *netloop.Room) {
		for _, s := range stages {
			r.On(s, "test."+s.String(), func(tick *netloop.Tick) { ran[s] = tick.Number() }, netloop.Priority(netloop.PriorityFirst))
		}
		echo.Handle(r, func(tick *netloop.Tick, from *netloop.Client, m text) error {
			if handled++; ran[tick.Stage()] == tick.Number() {
				t.Errorf("a message of %v ran after a system", tick.Stage())
			}
			told.Send(tick, netloop.To(from.ID()), m, netloop.RunAt(answerStage(handled)))
			return nil
		})
	})
	c := play(t, w, perfect)
	c.On(netloop.Initialization, "test.frame", func(*netloop.Tick) { frame++ })
	for _, s := range []netloop.Stage{netloop.PreUpdate, netloop.PostLateUpdate} {
		c.On(s, "test."+s.String(), func(*netloop.Tick) { shown[s] = frame }, netloop.Priority(netloop.PriorityFirst))
	}
	client.Handle(c, told, func(tick *netloop.Tick, _ text) {
		if heard++; shown[tick.Stage()] == frame {
			t.Errorf("a client's message of %v ran after a system", tick.Stage())
		}
	})
	for _, s := range stages {
		client.Send(c, echo, text{}, netloop.RunAt(s))
		w.Step(4)
	}
	if handled != len(stages) || heard != len(stages) {
		t.Errorf("%d messages and %d answers ran, want %d", handled, heard, len(stages))
	}
}

// answerStage returns one of two stages of told, in turn.
func answerStage(n int) netloop.Stage {
	if n%2 == 0 {
		return netloop.PreUpdate
	}
	return netloop.PostLateUpdate
}

func TestSystemsKeepTheirPlaceAroundBuiltins(t *testing.T) {
	var ran []string
	system := func(name string) func(*netloop.Tick) {
		return func(*netloop.Tick) { ran = append(ran, name) }
	}
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "c", system("c"), netloop.Priority(netloop.PriorityLast))
		r.On(netloop.Update, "b", system("b"))
		r.On(netloop.Update, "a", system("a"), netloop.Before("b"), netloop.Priority(netloop.PriorityLast))
		r.On(netloop.Update, "d", system("d"), netloop.After("c"), netloop.Priority(netloop.PriorityFirst))
	})
	w.Step(1)
	if got := strings.Join(ran, ""); got != "abcd" {
		t.Errorf("ran %q", got)
	}
}

func TestFixedStepsFollowTheirOwnRate(t *testing.T) {
	steps := map[uint64]int{}
	total := 0
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.FixedUpdate, "test.step", func(tick *netloop.Tick) {
			steps[tick.Number()]++
			total++
			if tick.Delta() != 20*time.Millisecond {
				t.Errorf("a step of %v", tick.Delta())
			}
		})
	}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(60), FixedRate: netloop.Hz(50)}))
	w.Step(600)
	if total != 500 {
		t.Errorf("%d steps of 50 Hz in ten seconds", total)
	}
	for n := uint64(1); n <= 600; n++ {
		if steps[n] > 1 {
			t.Errorf("tick %d had %d steps", n, steps[n])
		}
	}
}

func TestRandomNumbersFollowTheSeed(t *testing.T) {
	draw := func(seed uint64) (numbers []uint64) {
		w := open(t, func(r *netloop.Room) {
			r.On(netloop.Update, "test.draw", func(tick *netloop.Tick) { numbers = append(numbers, tick.Rand().Uint64()) })
		}, netlooptest.Seed(seed))
		w.Step(5)
		return numbers
	}
	if a, b := draw(7), draw(7); !slices.Equal(a, b) {
		t.Errorf("the same seed drew %v and %v", a, b)
	}
	if a, b := draw(7), draw(8); slices.Equal(a, b) {
		t.Error("two seeds drew the same")
	}
}
