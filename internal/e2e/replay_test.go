package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
)

// mixed is a game with state that depends on all inputs of a room: messages, calls, posts, results,
// joins, drops, returns, leaves, round trips, the time of day and random numbers.
func mixed(room **netloop.Room) script {
	return func(r *netloop.Room) {
		if room != nil {
			*room = r
		}
		var all *netloop.Object[thing]
		mix := func(t *netloop.Tick, n int32) { s := all.Edit(t); s.N = s.N*31 + n }
		r.OnStart(func(t *netloop.Tick) { all = things.Spawn(t, thing{}) })
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
		r.OnDrop(func(t *netloop.Tick, c *netloop.Client) { mix(t, -int32(c.ID())) })
		r.OnResume(func(t *netloop.Tick, c *netloop.Client) { mix(t, int32(c.ID())<<8+int32(len(c.Join().Addr))) })
		r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
			things.Spawn(t, thing{N: int32(c.ID())}, netloop.OwnedBy(c.ID()))
			mix(t, int32(len(c.Join().Token)))
			return nil
		})
		r.On(netloop.Update, "test.pulse", func(t *netloop.Tick) {
			t.AfterFuncScaled(70*time.Millisecond, func(t *netloop.Tick) { mix(t, int32(t.ScaledTime())) })
		}, netloop.Every(50*time.Millisecond, netloop.Scaled()))
		r.OnLeave(func(t *netloop.Tick, c *netloop.Client, why *netloop.Closed) { mix(t, int32(why.Code)) })
		r.OnDrain(func(t *netloop.Tick, left time.Duration) { mix(t, int32(left.Seconds())) })
		echo.Handle(r, func(t *netloop.Tick, from *netloop.Client, m text) error {
			mix(t, int32(m.N))
			if m.N%16 == 0 {
				r.SetTimeScale(t, int(m.N/16%5), 3)
			}
			if from == nil {
				mix(t, int32(len(m.S)))
				return nil
			}
			if m.S == "out" {
				from.Kick(t, netloop.CodeKicked, "as you wish")
			}
			told.Send(t, netloop.Everyone(), m)
			return nil
		})
		add.Handle(r, func(t *netloop.Tick, _ *netloop.Client, q pair) (sum, error) {
			mix(t, int32(q.A))
			if q.A > 90 {
				return sum{}, netloop.Refuse(netloop.CodeRefused, "too much")
			}
			return sum{q.A + q.B}, nil
		})
		r.On(netloop.Update, "test.facts", func(t *netloop.Tick) {
			mix(t, int32(t.Time().UnixNano()))
			mix(t, t.Rand().Int32())
			for c := range t.Clients() {
				l := c.Link()
				mix(t, int32(l.RTT)+int32(l.InFlight)<<8+int32(l.Window)<<16+int32(l.Silent))
			}
		})
		r.On(netloop.PostLateUpdate, "test.work", func(t *netloop.Tick) {
			if t.Number()%5 == 0 {
				netloop.Go(t, func(context.Context) (text, error) {
					if n := rand.Uint64N(90); n > 9 {
						return text{S: "done", N: n}, nil
					}
					return text{}, netloop.Refuse(netloop.CodeBusy, "later")
				}, func(t *netloop.Tick, v text, err error) {
					mix(t, int32(v.N))
					var refusal *netloop.Refusal
					if errors.As(err, &refusal) {
						mix(t, int32(refusal.Code)+int32(len(refusal.Text)))
					}
				})
			}
		})
	}
}

// recordMixed plays the mixed game and returns its recording. meanwhile runs in each tick.
func recordMixed(t *testing.T, seed uint64, ticks int, meanwhile func(w *netlooptest.World, tick int)) []byte {
	t.Helper()
	var file bytes.Buffer
	var room *netloop.Room
	w := open(t, mixed(&room), netlooptest.Seed(seed), netlooptest.Record(&file))
	slow := netlooptest.Link{Delay: 30 * time.Millisecond, Loss: 0.1, Bandwidth: 60_000, Buffer: 100 * time.Millisecond}
	rng := rand.New(rand.NewPCG(seed, 7))
	clients := []*client.Client{w.Join("a", nil, perfect), w.Join("bcd", nil, bad), w.Join("", nil, slow)}
	for n := range ticks {
		for i, c := range clients {
			if c.State().Phase != client.Playing || rng.IntN(8) == 0 {
				continue
			}
			m := text{S: "hello", N: uint64(n)}
			if n == ticks/2 && i == 1 {
				m.S = "out"
			}
			client.Send(c, echo, m, netloop.RunAt(stages[(n+i)%len(stages)]))
			client.Send(c, loose, m)
			client.Call(c, add, pair{int64(n % 100), int64(i)}, func(*netloop.Tick, sum, error) {})
		}
		if n%9 == 0 {
			if err := echo.Post(room, text{S: "posted", N: uint64(n)}); err != nil {
				t.Fatal(err)
			}
		}
		switch n {
		case ticks / 8: // It reconnects once it has been silent for long.
			w.Break(clients[2])
		case ticks / 3: // Another program of the same player.
			clients[0] = w.Join("a", nil, bad)
		}
		if n == ticks*2/3 {
			w.Drop(clients[0])
		}
		if meanwhile != nil {
			meanwhile(w, n)
		}
		w.Step(1)
	}
	return file.Bytes()
}

// replay runs a recording of the mixed game and returns its ticks up to the first error.
func replay(t *testing.T, file []byte) (ticks []netloop.ReplayTick, err error) {
	t.Helper()
	p, err := netloop.NewReplay(netloop.Config{}, mixed(nil), bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		tick, err := p.Step()
		if errors.Is(err, io.EOF) {
			return ticks, nil
		}
		if err != nil {
			if _, again := p.Step(); !errors.Is(again, err) {
				t.Errorf("after %v a step returns %v", err, again)
			}
			return ticks, err
		}
		ticks = append(ticks, tick)
	}
}

func TestReplayIsIdentical(t *testing.T) {
	reconnectWorld := map[bool]int{} // by another program or not
	seeds.Each(t, 10, func(t *testing.T, seed uint64) {
		const ticks = 500
		file := recordMixed(t, seed, ticks, nil)
		edit(t, file, func(tick *recording.Tick) {
			for _, a := range tick.Arrivals {
				if a.Kind == transport.Joined && a.Conn > 1 {
					reconnectWorld[len(a.Entrance.Join) > 0]++
				}
			}
		})
		first, err := replay(t, file)
		if err != nil || len(first) != ticks {
			t.Fatalf("seed %d: %d ticks, error %v", seed, len(first), err)
		}
		again, err := replay(t, file)
		if err != nil || !slices.Equal(again, first) {
			t.Fatalf("seed %d: a second replay differs, error %v", seed, err)
		}
	})
	if reconnectWorld[true] == 0 || reconnectWorld[false] == 0 {
		t.Errorf("%d clients resumed, and %d were replaced", reconnectWorld[false], reconnectWorld[true])
	}
}

// edit changes the ticks of a recording and writes it again.
func edit(t *testing.T, file []byte, fn func(*recording.Tick)) []byte {
	t.Helper()
	in, head, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	out, err := recording.NewWriter(&b, head)
	for err == nil {
		var record []byte
		if record, err = in.Next(); err != nil {
			break
		}
		var tick recording.Tick
		if err = recording.ReadTick(record, &tick); err != nil {
			break
		}
		fn(&tick)
		if record, err = recording.AppendTick(nil, &tick); err == nil {
			err = out.Write(record)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A replay reports each changed fact of a tick, with the tick.
func TestReplayOfOtherInputsDiverges(t *testing.T) {
	// Work runs in real time: on a busy machine all of it may end after the last tick.
	file := recordMixed(t, 1, 300, func(w *netlooptest.World, _ int) { w.Settle() })
	message := func(tick *recording.Tick) int {
		return slices.IndexFunc(tick.Arrivals, func(a recording.Arrival) bool { return a.Decoded && a.Message.Call == 0 && a.Message.Method == 1 })
	}
	for name, change := range map[string]func(*recording.Tick) bool{
		"a dropped message": func(tick *recording.Tick) bool {
			i := message(tick)
			if i >= 0 {
				tick.Arrivals = slices.Delete(tick.Arrivals, i, i+1)
			}
			return i >= 0
		},
		"a flipped byte": func(tick *recording.Tick) bool {
			i := message(tick)
			if i >= 0 {
				p := tick.Arrivals[i].Message.Payload
				p[len(p)-1] ^= 1
			}
			return i >= 0
		},
		"another time of day": func(tick *recording.Tick) bool { tick.Input.Wall = tick.Input.Wall.Add(1); return true },
		"another round trip": func(tick *recording.Tick) bool {
			for i := range tick.Links {
				tick.Links[i].Facts.SRTT++
			}
			return len(tick.Links) > 0
		},
		"a lost result": func(tick *recording.Tick) bool {
			had := len(tick.Results) > 0
			tick.Results = nil
			return had
		},
		"a lost acknowledgement": func(tick *recording.Tick) bool {
			n := len(tick.Arrivals)
			tick.Arrivals = slices.DeleteFunc(tick.Arrivals, func(a recording.Arrival) bool { return a.Kind == transport.Acks })
			return len(tick.Arrivals) < n
		},
		"a slot that was taken": func(tick *recording.Tick) bool {
			tick.Busy = append(tick.Busy, 1, 2, 3)
			return true
		},
		"another price": func(tick *recording.Tick) bool {
			i := message(tick)
			if i >= 0 {
				tick.Prices = append(tick.Prices, rpcqueue.Price{Method: tick.Arrivals[i].Message.Method, Cost: time.Second})
			}
			return i >= 0
		},
		"a lost post": func(tick *recording.Tick) bool {
			had := len(tick.Posts) > 0
			tick.Posts = nil
			return had
		},
		"an unexpected result": func(tick *recording.Tick) bool {
			tick.Results = append(tick.Results, recording.Result{Work: 1 << 40})
			return true
		},
	} {
		var at uint64
		bad := edit(t, file, func(tick *recording.Tick) {
			if at == 0 && tick.Input.Tick > 100 && change(tick) {
				at = tick.Input.Tick
			}
		})
		ticks, err := replay(t, bad)
		var d *netloop.Divergence
		// A lost input may show later: an acknowledgement, when the next delta is encoded.
		if !errors.As(err, &d) || d.Tick < at || d.Tick > at+20 || !strings.Contains(err.Error(), fmt.Sprint("at tick ", d.Tick)) {
			t.Errorf("%s at tick %d: %d ticks, error %v", name, at, len(ticks), err)
		}
	}
}

// other is a game of another schema.
type other struct{}

var otherSchema = netloop.NewSchema("other", 1, 0)

func (other) Schema() *netloop.Schema  { return otherSchema }
func (other) Open(*netloop.Room) error { return nil }

// otherBuild is a game of the same name with another declaration.
type otherBuild struct{ other }

var otherBuildSchema = netloop.NewSchema(schema.Name(), 1, 0)

func (otherBuild) Schema() *netloop.Schema { return otherBuildSchema }

// An input that a recording cannot contain is named, and ends the replay at its tick.
func TestUnrecordedInputIsNamed(t *testing.T) {
	work := func(r *netloop.Room, at uint64, start func(t *netloop.Tick)) {
		r.On(netloop.Update, "test.start", func(t *netloop.Tick) {
			if t.Number() == at {
				start(t)
			}
		})
	}
	for name, c := range map[string]struct {
		game script
		want string
	}{
		"a result": {func(r *netloop.Room) {
			work(r, 5, func(t *netloop.Tick) {
				netloop.Go(t, func(context.Context) (struct{ Conn net.Conn }, error) {
					return struct{ Conn net.Conn }{&net.TCPConn{}}, nil
				}, func(*netloop.Tick, struct{ Conn net.Conn }, error) {})
			})
		}, ".Conn of type *net.TCPConn"},
		"an error": {func(r *netloop.Room) {
			work(r, 5, func(t *netloop.Tick) {
				netloop.Go(t, func(context.Context) (int, error) { return 0, &net.AddrError{Err: "none"} }, func(*netloop.Tick, int, error) {})
			})
		}, "*net.AddrError"},
		"claims": {func(r *netloop.Room) {
			r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
				j.Claims = map[string]any{"session": make(chan int)}
				return nil
			})
		}, "the claims of client 1: netloop.Join.Claims[session] of type chan int"},
		"a context": {func(r *netloop.Room) {
			ctx, cancel := context.WithCancel(context.Background())
			r.On(netloop.Update, "test.guest", func(*netloop.Tick) {}, netloop.WithContext(ctx))
			work(r, 5, func(*netloop.Tick) { cancel() })
		}, "the end of the context of system test.guest"},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w := open(t, c.game, netlooptest.Record(&file))
			play(t, w, perfect)
			marked := uint64(0)
			for marked == 0 { // Work ends at any time.
				w.Step(1)
				edit(t, file.Bytes(), func(tick *recording.Tick) {
					if marked == 0 && len(tick.Unrecorded) > 0 {
						marked = tick.Input.Tick
					}
				})
			}
			p, err := netloop.NewReplay(netloop.Config{}, c.game, bytes.NewReader(file.Bytes()))
			for err == nil {
				_, err = p.Step()
			}
			var not *netloop.NotReplayable
			if !errors.As(err, &not) || not.Tick != marked || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want tick %d and %q", err, marked, c.want)
			}
		})
	}
	file := recordMixed(t, 1, 20, func(w *netlooptest.World, tick int) {
		if tick == 9 {
			w.Tick(func(*netloop.Tick) {})
		}
	})
	ticks, err := replay(t, file)
	var not *netloop.NotReplayable
	if !errors.As(err, &not) || not.Tick != 10 || len(ticks) != 9 {
		t.Fatalf("a look between two ticks: %d ticks, error %v", len(ticks), err)
	}
}
