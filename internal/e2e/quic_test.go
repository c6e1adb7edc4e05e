package e2e_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/relay"
)

// serve runs a server on a free port until the test ends, or stop is called,
// which returns what Run returned.
func serve(t *testing.T, g netloop.Game, rate uint64) (s *netloop.Server, stop func() error) {
	t.Helper()
	return serveAs(t, g, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(rate)}})
}

// running runs a server on free ports, and returns it with what Run will return.
func running(ctx context.Context, t *testing.T, cfg netloop.Config, g netloop.Game, prepare ...func(*netloop.Server)) (*netloop.Server, <-chan error) {
	t.Helper()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	for _, fn := range prepare {
		fn(s)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return s, done
}

// serveAs is serve with a configuration; its addresses are any. prepare is called before
// the server listens.
func serveAs(t *testing.T, g netloop.Game, cfg netloop.Config, prepare ...func(*netloop.Server)) (s *netloop.Server, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, done := running(ctx, t, cfg, g, prepare...)
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s, stop
}

// dial connects a client and runs it on a goroutine of its own. prepare is
// called before its first step.
func dial(t *testing.T, addr string, prepare func(*client.Client)) *client.Client {
	t.Helper()
	return start(t, connect(t, addr), prepare)
}

// start runs a client on a goroutine of its own.
func start(t *testing.T, c *client.Client, prepare func(*client.Client)) *client.Client {
	t.Helper()
	if prepare != nil {
		prepare(c)
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(run) // Why it ended is read from Closed.
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return c
}

// connect connects a client that the test steps itself, or not.
func connect(t *testing.T, addr string) *client.Client {
	t.Helper()
	return connectTo(t, addr, schema)
}

func connectTo(t *testing.T, addr string, schema *netloop.Schema) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, addr, client.Config{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestServerOverQUIC(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, leaks) })
	closed := 0
	s, stop := serve(t, script(func(r *netloop.Room) {
		add.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q pair) (sum, error) { return sum{q.A + q.B}, nil })
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			things.Spawn(tick, thing{N: int32(c.ID())})
			return nil
		})
		r.OnClose(func(context.Context) error { closed++; return nil })
	}), 60)

	seen := make(chan int32, 1)
	c := dial(t, s.Addr().String(), func(c *client.Client) {
		client.Watch(c, things, client.Watcher[thing]{Spawn: func(_ *netloop.Tick, o *netloop.Object[thing]) { seen <- o.State().N }})
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := client.Await(ctx, c, add, pair{40, 2})
	if err != nil || got.Sum != 42 {
		t.Fatalf("40 + 2 = %v, %v", got.Sum, err)
	}
	select {
	case n := <-seen:
		if n != int32(c.ID()) {
			t.Errorf("client %d sees thing %d", c.ID(), n)
		}
	case <-ctx.Done():
		t.Fatal("no state arrived")
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if closed != 1 {
		t.Errorf("OnClose ran %d times", closed)
	}
	for c.Closed() == nil && ctx.Err() == nil {
		_, _ = client.Await(ctx, c, add, pair{}) // It fails once the client has read the goodbye.
	}
	if why := c.Closed(); why == nil || why.Code != netloop.CodeClosing {
		t.Errorf("the client was told %v", why)
	}
}

func TestPortInUseNamesTheAddress(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := netloop.New(netloop.Config{Listen: taken.LocalAddr().String()}, script(func(*netloop.Room) {}))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), taken.LocalAddr().String()) {
		t.Errorf("Run: %v", err)
	}
}

// gaps counts the snapshots that a client missed between the first and the last
// one that it got.
type gaps struct{ last, got, missed atomic.Uint64 }

func (g *gaps) watch(c *client.Client) {
	c.OnSnapshot(func(s client.Snapshot) {
		if last := g.last.Swap(s.Tick); last != 0 {
			g.missed.Add(s.Tick - last - 1)
		}
		g.got.Add(1)
	})
}

// busy is a game of 100 objects that all change in every tick.
func busy(r *netloop.Room) {
	r.OnStart(func(tick *netloop.Tick) {
		for range 100 {
			things.Spawn(tick, thing{})
		}
	})
	r.On(netloop.Update, "test.edit", func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			o.Edit(tick).N++
		}
	})
}

// TestSilentClientCostsNobodyASnapshot lets one client vanish without a word and
// another stop reading its stream, which the server fills, and watches a healthy
// one. While the machine itself stands still everybody misses something: what
// happens then says nothing, and is played again.
func TestSilentClientCostsNobodyASnapshot(t *testing.T) {
	for range 5 {
		var missed uint64
		var worst netloop.Overload
		still := standstill(func() {
			t.Run("play", func(t *testing.T) { missed, worst = besideSilentClients(t) })
		})
		switch {
		case t.Failed() || missed == 0 && worst == netloop.OverloadNone:
			return
		case still < 25*time.Millisecond: // Half a period.
			t.Fatalf("the healthy client missed %d snapshots, and the overload was %v", missed, worst)
		}
		t.Logf("missed %d, overload %v, but the machine stood still for %v", missed, worst, still)
	}
	t.Skip("the machine is too busy to tell")
}

// standstill returns for how long at most the machine let a goroutine that is
// always due wait, while fn ran.
func standstill(fn func()) (longest time.Duration) {
	const every = 5 * time.Millisecond
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		poll := time.NewTicker(every)
		defer poll.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-poll.C:
				longest = max(longest, time.Since(last)-every)
			case <-end:
				return
			}
		}
	}()
	fn()
	close(end)
	<-ended
	return longest
}

// besideSilentClients returns what a healthy client missed beside two that went
// silent, and the highest level of overload that it was told.
func besideSilentClients(t *testing.T) (missed uint64, worst netloop.Overload) {
	// The rate in Hz is low enough for a busy machine, and so many snapshots take longer than idle.
	const rate, watched = 20, 16
	const idle = 750 * time.Millisecond // Nobody who is there is silent for that long.
	var spam atomic.Uint64              // the client that gets it
	// Size 3: the healthy one leaves too, when nobody reads any more.
	ended := make(chan netloop.Code, 3)
	s, _ := serveAs(t, script(func(r *netloop.Room) {
		busy(r)
		r.On(netloop.Update, "test.spam", func(tick *netloop.Tick) {
			if to := netloop.ClientID(spam.Load()); to != 0 { // 80 kB/s of reliable data.
				for range 50 {
					told.Send(tick, netloop.To(to), text{S: "a line that is sixty-four bytes long, as long as a line may be"})
				}
			}
		})
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { ended <- why.Code })
	}), netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(rate)}}, func(s *netloop.Server) { inside.Netloop.Server(s).SetIdleTimeout(idle) })

	var healthy gaps
	var level atomic.Uint32 // the highest level of overload
	dial(t, s.Addr().String(), func(c *client.Client) {
		healthy.watch(c)
		c.OnOverload(func(o netloop.Overload) { level.Store(max(level.Load(), uint32(o))) })
	})
	way, err := relay.Listen(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dial(t, way.Addr().String(), nil)
	deaf := connect(t, s.Addr().String())

	for deaf.State().Phase != client.Playing {
		deaf.Step(time.Second / rate) // From here on it is deaf: nobody steps it.
	}
	waitFor(t, func() bool { return healthy.got.Load() > rate/4 })
	spam.Store(uint64(deaf.ID()))
	if err := way.Close(); err != nil { // Both sides see nothing but silence.
		t.Fatal(err)
	}
	missedBefore, from := healthy.missed.Load(), healthy.got.Load()
	waitFor(t, func() bool { return healthy.got.Load() >= from+watched })
	missed, worst = healthy.missed.Load()-missedBefore, netloop.Overload(level.Load())
	// The server finds out about both, and says so.
	codes := map[netloop.Code]bool{}
	for range 2 {
		select {
		case code := <-ended:
			codes[code] = true
		case <-time.After(60 * time.Second):
			t.Fatal("the server never noticed")
		}
	}
	if !codes[netloop.CodeLost] {
		t.Errorf("they left with %v", codes)
	}
	return missed, worst
}

// waitFor waits until ok, for at most a minute.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !ok() {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatal("it did not come to pass within a minute")
		}
	}
}
