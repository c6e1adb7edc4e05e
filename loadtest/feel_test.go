package loadtest_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/loadtest"
	"github.com/netloop/netloop/netlooptest"
)

// network is the players' network: the round trip, the jitter of each way, and the loss of each
// way.
type network struct {
	rtt, jitter time.Duration
	loss        float64
}

// networks are the rows of make feel.
var networks = []network{
	{},
	{60 * time.Millisecond, 5 * time.Millisecond, 0.01},
	{150 * time.Millisecond, 20 * time.Millisecond, 0.05},
	{250 * time.Millisecond, 40 * time.Millisecond, 0.10},
}

// link returns the network in memory. The jitter is of a round trip, as in package netem.
func (n network) link() netlooptest.Link {
	return netlooptest.Link{Delay: n.rtt / 2, Jitter: n.jitter, Loss: n.loss}
}

func (n network) String() string {
	return fmt.Sprintf("%3d ms ± %2d, %2.0f %%", n.rtt.Milliseconds(), n.jitter.Milliseconds(), n.loss*100)
}

// frameRates are those of the bots, on a server of 60 Hz.
var frameRates = []int{60, 144, 60, 30, 240, 60}

// inMemory lets bots play in virtual time, and returns their figures.
func inMemory(t *testing.T, g netloop.Game, n network, seed uint64, length time.Duration, begin func([]*client.Client)) (loadtest.Feel, []*client.Client) {
	t.Helper()
	w := netlooptest.New(t, g, netlooptest.Seed(seed))
	r := loadtest.NewRehearsal(w.Now)
	var all []*client.Client
	for i, fps := range frameRates {
		drift := netlooptest.ClientClock(time.Duration(i)*time.Second, 20*i-50)
		c := w.Join("", bot.New().Join(i), n.link(), netlooptest.FPS(fps), drift)
		w.Until(600, func() bool { return c.State().Phase == client.Playing })
		r.Play(bot.New(), c, w.GameTime)
		all = append(all, c)
	}
	w.Step(60 * 10) // Until the clocks are synchronised.
	r.Begin()
	begin(all)
	w.Step(int(60 * length.Seconds()))
	return loadtest.End(r), all
}

// overSockets lets bots play on a server of this process for a while of real time.
func overSockets(t *testing.T, n network, seed uint64, length time.Duration) loadtest.Feel {
	t.Helper()
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	g := &timed{Game: arena.New(), now: now}
	s, stop := serve(t, netloop.Config{Seed: seed}, g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec, err := netem.Parse(fmt.Sprintf("rtt=%v,jitter=%v,loss=%v%%", n.rtt, n.jitter, 100*n.loss))
	if err != nil {
		t.Fatal(err)
	}
	var all []*loadtest.Rehearsal
	var running sync.WaitGroup
	for i := range frameRates {
		socket, err := netem.Dial(netem.Config{Spec: spec, Seed: seed + uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		d := bridge.Client.NewDialer(socket).(*client.Dialer)
		c, err := d.Dial(ctx, s.Addr().String(), client.Config{Schema: arena.Schema, Join: bot.New().Join(i)})
		if err != nil {
			t.Fatal(err)
		}
		r := loadtest.NewRehearsal(now)
		r.Play(bot.New(), c, g.truth)
		all = append(all, r)
		running.Go(func() {
			if err := c.Run(ctx); err != nil {
				t.Error(err)
			}
			_ = c.Close()
			_ = d.Close()
		})
	}
	time.Sleep(10 * time.Second)
	for _, r := range all {
		r.Begin()
	}
	time.Sleep(length)
	cancel()
	running.Wait()
	stop()
	return loadtest.End(all...)
}

// timed is an arena that measures its true game time: no tick starts early, and the earliest of
// some ticks is hardly late.
type timed struct {
	*arena.Game
	now  func() time.Duration
	zero atomic.Int64 // the time at which it was 0
}

func (g *timed) Open(r *netloop.Room) error {
	var earliest [2]time.Duration // of the ticks of this second and of the one before
	r.On(netloop.EarlyUpdate, "test.time", func(t *netloop.Tick) {
		zero := g.now() - t.GameTime()
		if t.Number()%60 == 1 {
			earliest = [2]time.Duration{zero, earliest[0]}
		}
		earliest[0] = min(earliest[0], zero)
		g.zero.Store(int64(min(earliest[0], earliest[1])))
		if earliest[1] == 0 {
			g.zero.Store(int64(earliest[0]))
		}
	})
	return g.Game.Open(r)
}

func (g *timed) truth() time.Duration { return g.now() - time.Duration(g.zero.Load()) }

// feelHeader and feelRow format the figures of Feel.
const feelHeader = "network                 | own ship, frames | mispredicted/min | off by     | view delay ms | no neighbour | hits seen    | inputs missed | input B | clock error ms\n" +
	"RTT ± jitter, loss      | p50  p99         | all   for late   | p50  p99   | p50    p99    |              | and confirmed|               |         | p50    p99"

func feelRow(where string, n network, f *loadtest.Feel) string {
	share := func(a, b uint64) float64 { return 100 * float64(a) / float64(max(b, 1)) }
	return fmt.Sprintf("%s %-16s| %-4s %-11s | %-5s %-10s | %-4s %-5s | %-6s %-6s | %9s %% | %4d %5.1f %% | %6.3f %%      | %-7s | %-6s %s",
		where, n, show(f.Reaction.P50), show(f.Reaction.P99), show(f.Mispredicted), show(f.MispredictedLate),
		show(f.Correction.P50), show(f.Correction.P99), show(f.Delay.P50), show(f.Delay.P99), show(percent(f.Starved)),
		f.Hits, share(f.Confirmed, f.Hits), share(f.InputsMissed, f.Inputs), show(f.InputBytes), show(f.ClockError.P50), show(f.ClockError.P99))
}

func percent(x *float64) *float64 {
	if x == nil {
		return nil
	}
	p := *x * 100
	return &p
}

func show(x *float64) string {
	if x == nil {
		return "–"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", *x), "0"), ".")
}

// TestFeel prints a line for each network, in memory and over real sockets.
func TestFeel(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes minutes: make feel runs it, and make verify")
	}
	fmt.Println(feelHeader)
	for _, n := range networks {
		t.Run(fmt.Sprint("memory ", n), func(t *testing.T) {
			f, _ := inMemory(t, arena.New(), n, 1, 2*time.Minute, func([]*client.Client) {})
			fmt.Println(feelRow("memory ", n, &f))
		})
	}
	for _, n := range networks {
		t.Run(fmt.Sprint("sockets ", n), func(t *testing.T) {
			f := overSockets(t, n, 1, 30*time.Second)
			fmt.Println(feelRow("sockets", n, &f))
		})
	}
}

// TestFeelOfABadNetwork plays briefly, in memory, and requires the promised figures at a round trip
// of 150 ms, 20 ms of jitter and 5 % of loss.
func TestFeelOfABadNetwork(t *testing.T) {
	seeds.OneGoroutine(t)
	n, length := networks[2], time.Minute
	if testing.Short() {
		length = 20 * time.Second
	}
	g := &judgedArena{Game: arena.New()}
	f, players := inMemory(t, g, n, 2, length, g.begin)
	t.Logf("\n%s\n%s", feelHeader, feelRow("memory ", n, &f))
	if *f.Reaction.P99 > 0 {
		t.Errorf("the own ship is drawn %v frames after the input", *f.Reaction.P99)
	}
	if made := uint64(length.Seconds()) * 60 * uint64(len(players)); f.Inputs < made*99/100 || f.Inputs > made*101/100 {
		t.Errorf("%d inputs were made, want one for each of %d steps", f.Inputs, made)
	}
	if float64(f.InputsMissed) > 0.001*float64(f.Inputs) {
		t.Errorf("%d of %d inputs were missed", f.InputsMissed, f.Inputs)
	}
	if *f.Starved > 0.01 {
		t.Errorf("%.2f %% of the frames had no neighbour", 100**f.Starved)
	}
	if *f.InputBytes < 5 || *f.InputBytes > 30 {
		t.Errorf("inputs take %.1f bytes of a datagram", *f.InputBytes)
	}
	if *f.ClockError.P99 > 5 {
		t.Errorf("the server's time is %.1f ms off", *f.ClockError.P99)
	}
	if f.Hits < 10 || float64(f.Confirmed) < 0.97*float64(f.Hits) {
		t.Errorf("%d hits were seen, and %d confirmed", f.Hits, f.Confirmed)
	}
	g.judge(t, players)
}

// judgedArena is an arena that counts the respawns of ships, and mispredictions.
type judgedArena struct {
	*arena.Game
	hulls  map[netloop.Ref[arena.Ship]]uint8
	fallen uint64
	before map[string]uint64 // mispredictions before the measurement
}

func (g *judgedArena) Open(r *netloop.Room) error {
	g.hulls = make(map[netloop.Ref[arena.Ship]]uint8)
	r.On(netloop.PostLateUpdate, "test.fallen", func(t *netloop.Tick) {
		for o := range arena.Ships.All(t) {
			s := o.State()
			if was, ok := g.hulls[o.Ref()]; ok && was == 0 && s.Hull > 0 {
				g.fallen++
			}
			g.hulls[o.Ref()] = s.Hull
		}
	})
	return g.Game.Open(r)
}

// wrong counts the mispredictions so far, by field, and under "late" the objects that late inputs
// explain.
func wrong(players []*client.Client) map[string]uint64 {
	all := map[string]uint64{}
	for _, c := range players {
		all["late"] += c.Stats().Prediction.MispredictedLate
		for _, m := range client.Mispredictions(c, arena.Ships) {
			all["Ship."+m.Field] += m.Count
		}
		for _, m := range client.Mispredictions(c, arena.Shots) {
			all["Shot."+m.Field] += m.Count
		}
	}
	return all
}

// begin discards the first inputs, which arrive too late until the lead is known.
func (g *judgedArena) begin(players []*client.Client) { g.fallen, g.before = 0, wrong(players) }

// judge requires that all mispredictions are explained by missed inputs and by other players. Those
// change hull, score and shield, and the position only at a respawn.
func (g *judgedArena) judge(t *testing.T, players []*client.Client) {
	t.Helper()
	all := wrong(players)
	late := all["late"] - g.before["late"]
	t.Logf("%d ships have respawned; mispredictions: %v, before the measurement: %v", g.fallen, all, g.before)
	for field, n := range all {
		allowed := late
		switch field {
		case "Ship.Hull", "Ship.Falls", "Ship.Score", "Ship.Shield", "late":
			continue
		case "Ship.X", "Ship.Y", "Ship.VX", "Ship.VY", "Ship.Leaps":
			allowed += g.fallen
		}
		if n -= g.before[field]; n > allowed {
			t.Errorf("%d mispredictions of %s, of which late inputs and other players explain %d", n, field, allowed)
		}
	}
}
