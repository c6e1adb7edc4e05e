package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// sleepingSpec is a room at 20 Hz that may sleep.
var sleepingSpec = netloop.RoomSpec{Rate: netloop.Hz(20), Sleep: true, KeepDropped: 30 * time.Second}

// sleepGame is a game in such a room: it records its ticks, and the ticks with scheduled calls.
type sleepGame struct {
	*netlooptest.World
	ran    []uint64 // ticks
	called []uint64 // ticks of timers, periodic systems and results
	all    *netloop.Object[thing]
	room   *netloop.Room
	server *netloop.Server
}

func (s *sleepGame) mark(t *netloop.Tick) { s.called = append(s.called, t.Number()) }

func newSleepGame(t *testing.T, more script, o ...netlooptest.Option) *sleepGame {
	s := &sleepGame{}
	s.World = open(t, func(r *netloop.Room) {
		s.room, s.server = r, r.Server()
		r.On(netloop.Update, "test.count", func(t *netloop.Tick) { s.ran = append(s.ran, t.Number()) })
		r.OnStart(func(t *netloop.Tick) { s.all = things.Spawn(t, thing{}) })
		echo.Handle(r, func(t *netloop.Tick, _ *netloop.Client, m text) error {
			s.all.Edit(t).N += int32(m.N)
			return nil
		})
		if more != nil {
			more(r)
		}
	}, append([]netlooptest.Option{netlooptest.Room(sleepingSpec)}, o...)...)
	return s
}

func (s *sleepGame) asleep() bool { return s.Room("").Asleep() }

// fallAsleep steps until the room sleeps, and then for so many ticks, in which it must remain
// asleep.
func (s *sleepGame) fallAsleep(t *testing.T, ticks int) {
	t.Helper()
	s.Until(200, s.asleep)
	n := len(s.ran)
	s.Step(ticks)
	if !s.asleep() || len(s.ran) != n {
		t.Fatalf("it ran %d ticks in its sleep", len(s.ran)-n)
	}
}

// A room with idle clients falls asleep, also over a bad link. Each cause wakes it within a few
// ticks. Its clients stay connected while it sleeps; afterwards a client gets changes, and its
// digest equals that of the server.
func TestARoomSleepsUntilItHasWork(t *testing.T) {
	causes := map[string]func(s *sleepGame, c *client.Client) (ticks int){
		"a message": func(s *sleepGame, c *client.Client) int { client.Send(c, echo, text{N: 1}); return 6 },
		"a client that joins": func(s *sleepGame, _ *client.Client) int {
			s.Join("", nil, perfect)
			return 6
		},
		"a client that leaves":      func(_ *sleepGame, c *client.Client) int { _ = c.Close(); return 6 },
		"a connection that breaks":  func(s *sleepGame, c *client.Client) int { s.Break(c); return 6 },
		"a link that falls silent":  func(s *sleepGame, c *client.Client) int { s.Cut(c); return 120 },
		"a question for the digest": func(_ *sleepGame, c *client.Client) int { c.Verify(func(error) {}); return 6 },
		"a posted message":          func(s *sleepGame, _ *client.Client) int { _ = echo.Post(s.room, text{N: 1}); return 2 },
		"a look between two ticks": func(s *sleepGame, _ *client.Client) int {
			s.Tick(func(t *netloop.Tick) { s.all.Edit(t).N++ })
			return 2
		},
		"the server closes it": func(s *sleepGame, _ *client.Client) int {
			_ = s.server.CloseRoom("", 0, netloop.CodeGame, "")
			return 2
		},
		"work that returns": func(s *sleepGame, _ *client.Client) int {
			s.Tick(func(t *netloop.Tick) {
				netloop.Go(t, func(context.Context) (int, error) { return 1, nil }, func(t *netloop.Tick, _ int, _ error) { s.mark(t) })
			})
			s.Settle()
			return 3
		},
	}
	for name, cause := range causes {
		t.Run(name, func(t *testing.T) {
			s := newSleepGame(t, nil)
			c := play(t, s.World, netlooptest.Link{Delay: 30 * time.Millisecond})
			other := play(t, s.World, bad)
			s.fallAsleep(t, 200)
			if c.State().Phase != client.Playing || other.State().Phase != client.Playing {
				t.Fatal("a client has lost its connection")
			}
			n := len(s.ran)
			s.Step(cause(s, c))
			if len(s.ran) == n {
				t.Fatal("it does not wake")
			}
			if s.Ended() != nil {
				return
			}
			var got error
			asked := errors.New("nothing was compared")
			got = asked
			other.Verify(func(err error) { got = err })
			s.Until(400, func() bool { return !errors.Is(got, asked) })
			if got != nil {
				t.Error(got)
			}
			if all := look(s.World, other, things); len(all) != 1 || all[0].N != s.all.State().N {
				t.Errorf("a client sees %v", all)
			}
		})
	}
}

// Scheduled calls run in the same ticks in a sleeping room as in one that never sleeps, at all
// time scales, and cause no other tick.
func TestTimersWakeARoomInTheirTick(t *testing.T) {
	seeds.OneGoroutine(t)
	const most = 3000
	due := map[string]func(s *sleepGame, r *netloop.Room, t *netloop.Tick){
		"AfterFunc":       func(s *sleepGame, _ *netloop.Room, t *netloop.Tick) { t.AfterFunc(33333*time.Millisecond, s.mark) },
		"AfterFuncScaled": func(s *sleepGame, _ *netloop.Room, t *netloop.Tick) { t.AfterFuncScaled(7777*time.Millisecond, s.mark) },
		"At":              func(s *sleepGame, _ *netloop.Room, t *netloop.Tick) { t.At(t.InScaled(9*time.Second), s.mark) },
		"a deadline that a system looks at": func(s *sleepGame, r *netloop.Room, t *netloop.Tick) {
			at, scaled, done := t.In(20*time.Second), t.InScaled(20*time.Second), [2]bool{}
			r.On(netloop.PostLateUpdate, "test.look", func(t *netloop.Tick) {
				for i, d := range []netloop.Deadline{at, scaled} {
					if d.Passed(t) && !done[i] {
						done[i] = true
						s.mark(t)
					}
				}
			})
		},
		"more deadlines than are kept": func(s *sleepGame, r *netloop.Room, t *netloop.Tick) {
			var all []netloop.Deadline
			for i := range 70 {
				all = append(all, t.In(time.Duration(200+i)*100*time.Millisecond))
			}
			r.On(netloop.PostLateUpdate, "test.look", func(t *netloop.Tick) {
				if n := len(all); n > 0 && all[n-1].Passed(t) {
					all = all[:0]
					s.mark(t)
				}
			})
		},
		"a period": func(s *sleepGame, r *netloop.Room, _ *netloop.Tick) {
			r.On(netloop.Update, "test.period", s.mark, netloop.Every(11*time.Second))
		},
		"a period of scaled time": func(s *sleepGame, r *netloop.Room, _ *netloop.Tick) {
			r.On(netloop.Update, "test.period", s.mark, netloop.Every(3*time.Second, netloop.Scaled()))
		},
		"a period of fixed steps": func(s *sleepGame, r *netloop.Room, _ *netloop.Tick) {
			r.On(netloop.FixedUpdate, "test.period", s.mark, netloop.Every(7*time.Second))
		},
		"a period that catches up": func(s *sleepGame, r *netloop.Room, _ *netloop.Tick) {
			r.On(netloop.Update, "test.period", s.mark, netloop.Every(11*time.Second, netloop.CatchUp(3)))
		},
		"a gap": func(s *sleepGame, r *netloop.Room, _ *netloop.Tick) {
			r.On(netloop.Update, "test.period", s.mark, netloop.MinGap(13*time.Second))
		},
	}
	due["a period of scaled time at the usual speed"] = due["a period of scaled time"]
	for name, ask := range due {
		t.Run(name, func(t *testing.T) {
			var calls [2][]uint64
			for i, sleeps := range []bool{false, true} {
				spec := sleepingSpec
				spec.Sleep, spec.FixedRate = sleeps, netloop.Hz(7)
				var s *sleepGame
				s = newSleepGame(t, func(r *netloop.Room) {
					if !strings.Contains(name, "usual") {
						r.OnStart(func(t *netloop.Tick) { t.AfterFunc(time.Second, func(t *netloop.Tick) { r.SetTimeScale(t, 1, 3) }) })
					}
					r.OnStart(func(t *netloop.Tick) { ask(s, r, t) })
				}, netlooptest.Room(spec))
				s.Step(most)
				calls[i] = s.called
				if n := len(s.ran); sleeps && n > 2*len(s.called)+600 || !sleeps && n != most {
					t.Errorf("it ran %d ticks for %d calls", n, len(s.called))
				}
			}
			if len(calls[0]) == 0 || !slices.Equal(calls[0], calls[1]) {
				t.Errorf("awake it called in ticks %v, asleep in %v", calls[0], calls[1])
			}
		})
	}
}

// A sleeping room closes after its spec's time without clients, and ends the reserved time of a
// dropped client.
func TestTimeoutsEndInASleepingRoom(t *testing.T) {
	var dropped, left uint64
	spec := sleepingSpec
	spec.CloseEmpty = time.Minute
	s := newSleepGame(t, func(r *netloop.Room) {
		r.OnDrop(func(t *netloop.Tick, _ *netloop.Client) { dropped = t.Number() })
		r.OnLeave(func(t *netloop.Tick, _ *netloop.Client, _ *netloop.Closed) { left = t.Number() })
	}, netlooptest.Room(spec))
	c := play(t, s.World, perfect)
	s.fallAsleep(t, 300)
	s.Drop(c)
	silent := uint64(s.GameTime() / spec.Rate.Period())
	s.Step(200)
	// LostAfter is 5 s.
	if want := silent + 100; dropped < want-2 || dropped > want+2 || !s.asleep() {
		t.Fatalf("it was dropped in tick %d, want %d", dropped, want)
	}
	s.Step(600)
	if want := dropped + 600; left != want || !s.asleep() {
		t.Errorf("it left in tick %d, want %d", left, want)
	}
	s.Step(1200)
	if last := s.ran[len(s.ran)-1]; s.Ended() == nil || last < left+1200 || last > left+1201 {
		t.Errorf("it closed in tick %d, want %d", last, left+1200)
	}
}

// A silent client is dropped in time, whether it became silent before or after its room fell
// asleep.
func TestASleepingRoomDropsSilentClients(t *testing.T) {
	awake := 0 // number of steps before the room sleeps
	for early := range 6 {
		var dropped uint64
		s := newSleepGame(t, func(r *netloop.Room) {
			r.OnDrop(func(t *netloop.Tick, _ *netloop.Client) { dropped = t.Number() })
		})
		c := play(t, s.World, perfect)
		steps := 0
		for ; steps < awake-early || early == 0 && !s.asleep(); steps++ {
			s.Step(1)
		}
		awake = max(awake, steps)
		s.Drop(c)
		silent := uint64(s.GameTime() / sleepingSpec.Rate.Period())
		s.Step(130)
		if want := silent + 100; dropped < want-2 || dropped > want+2 { // LostAfter is 5 s.
			t.Errorf("%d steps before the room slept: it was dropped in tick %d, want %d", early, dropped, want)
		}
	}
}

// The silence of a client begins with the arrival of its last packet, also if the room slept then,
// and lasts until the exact moment of a tick.
func TestAWakingClientIsSilentSinceItsPacket(t *testing.T) {
	for delay, want := range map[time.Duration]time.Duration{
		5 * time.Millisecond:  20 * time.Millisecond, // It is sent between two ticks of 50 ms.
		25 * time.Millisecond: 0,
	} {
		silent := time.Duration(-1)
		s := newSleepGame(t, func(r *netloop.Room) {
			r.On(netloop.Update, "test.silent", func(t *netloop.Tick) {
				for c := range t.Clients() {
					silent = c.Link().Silent
				}
			})
		})
		c := play(t, s.World, netlooptest.Link{Delay: delay})
		s.fallAsleep(t, 10)
		client.Send(c, echo, text{N: 1})
		n := len(s.ran)
		s.Until(10, func() bool { return len(s.ran) > n })
		if silent != want {
			t.Errorf("a delay of %v: silent for %v in the tick after its sleep, want %v", delay, silent, want)
		}
	}
}

// A recording contains the sleep of a room: a replay skips the same ticks.
func TestASleepingRoomReplays(t *testing.T) {
	var file bytes.Buffer
	game := func(r *netloop.Room) {
		mixed(nil)(r)
		sleepless := r.Loop()
		sleepless.Remove("test.pulse")
		sleepless.Remove("test.facts")
		sleepless.Remove("test.work")
		if err := sleepless.Set(); err != nil {
			t.Error(err)
		}
		r.OnStart(func(t *netloop.Tick) { t.AfterFunc(40*time.Second, func(*netloop.Tick) {}) })
	}
	w := netlooptest.New(t, script(game), netlooptest.Room(sleepingSpec), netlooptest.Record(&file))
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
	slept := 0
	for n := range uint64(5) {
		client.Send(c, echo, text{N: n})
		w.Until(300, w.Room("").Asleep)
		w.Step(200)
		if w.Room("").Asleep() {
			slept++
		}
	}
	w.Drain(0)
	if slept == 0 {
		t.Fatal("it never slept")
	}
	p, err := netloop.NewReplay(netloop.Config{}, script(game), &file)
	if err != nil {
		t.Fatal(err)
	}
	var last, jumps uint64
	for {
		tick, err := p.Step()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if tick.Tick > last+1 {
			jumps++
		}
		last = tick.Tick
	}
	if jumps < 5 {
		t.Errorf("the replay ran up to tick %d, and skipped ticks %d times", last, jumps)
	}
}

// A server's room sleeps in real time too: its goroutine waits for an event and handles it. It
// counts as asleep, not as hung, and the server's end wakes it.
func TestARoomOfAServerSleepsAndWakes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	spec := table("a")
	spec.Sleep, spec.Rate = true, netloop.Hz(100)
	var room *netloop.Room
	heard := make(chan uint64, 1)
	s, done := supervised(ctx, t, netloop.Config{Room: spec, Watchdog: 100 * time.Millisecond}, script(func(r *netloop.Room) {
		room = r
		add.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q pair) (sum, error) { return sum{q.A + q.B}, nil })
		echo.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error { heard <- m.N; return nil })
	}))
	asleep := func() bool {
		_, text := page(t, s, "/metrics")
		return strings.Contains(text, `netloop_rooms_asleep{kind="table"} 1`+"\n")
	}
	for n := range uint64(2) {
		waitFor(t, asleep)
		if status, body := page(t, s, "/healthz"); status != http.StatusOK {
			t.Error(body)
		}
		if err := echo.Post(room, text{N: n}); err != nil || <-heard != n {
			t.Errorf("a posted message: %v", err)
		}
	}
	waitFor(t, asleep)
	c := enterRoom(t, s, "a")
	run, halt := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- c.Run(run) }()
	if got, err := client.Await(ctx, c, add, pair{1, 2}); err != nil || got.Sum != 3 {
		t.Errorf("the answer is %v, %v", got, err)
	}
	halt()
	if err := <-ran; err != nil { // Close must not run beside Step.
		t.Error(err)
	}
	_ = c.Close()
	waitFor(t, asleep)
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Idle players make an input in each step, and their room sleeps nevertheless. The first other
// input wakes it, and runs in its step.
func TestIdleInputsDoNotWakeARoom(t *testing.T) {
	type ran struct{ step, made uint64 }
	var fired []ran
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(t *netloop.Tick, _ *netloop.Client, in control) {
			if in.Fire {
				fired = append(fired, ran{t.FixedStep(), uint64(in.Step)})
			}
		})
	}}, netlooptest.Room(sleepingSpec))
	pressed := false
	c := w.Join("", nil, netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.02})
	client.Inputs(c, controls, func(t *netloop.Tick) control {
		if !pressed {
			return control{}
		}
		return control{Step: uint32(t.FixedStep()), Fire: true}
	})
	w.Until(100, func() bool { return c.State().Phase == client.Playing })
	for range 2 {
		fired = nil
		w.Until(200, w.Room("").Asleep)
		for range 100 {
			if w.Step(1); !w.Room("").Asleep() {
				t.Fatal("it woke without a reason")
			}
		}
		pressed = true
		w.Step(40)
		if w.Room("").Asleep() {
			t.Error("it sleeps during an active player's inputs")
		}
		pressed = false
		if len(fired) < 30 || fired[0].step != fired[0].made {
			t.Errorf("it ran %v", fired)
		}
	}
}

// Clients of a sleeping room draw the last state, and no frame counts as starved, over any link.
func TestClientsOfASleepingRoomDoNotStarve(t *testing.T) {
	s := newSleepGame(t, nil)
	var all []*client.Client
	for _, link := range []netlooptest.Link{perfect, {Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond}} {
		c := play(t, s.World, link)
		client.Interpolate(c, things)
		all = append(all, c)
	}
	for round := range 3 {
		s.Tick(func(t *netloop.Tick) { s.all.Edit(t).X++ })
		s.Step(2) // It wakes.
		s.Until(200, s.asleep)
		var before []client.Stats
		for _, c := range all {
			before = append(before, c.Stats())
		}
		s.Step(200)
		for i, c := range all {
			now := c.Stats()
			if drawn := now.Drawn - before[i].Drawn; now.Starved != before[i].Starved || drawn < 190 {
				t.Errorf("round %d, client %d: of %d frames %d starve", round, i, drawn, now.Starved-before[i].Starved)
			}
		}
	}
}
