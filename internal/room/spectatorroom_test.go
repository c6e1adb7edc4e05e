package room_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
)

// vault is an object that all clients see; its contents change with each tick.
type vault struct {
	Secret string `net:"max=16"`
}

var (
	vaultSchema = netloop.NewSchema("vault", 1, 0)
	vaults      = netloop.NewClass[vault](vaultSchema, "vault")
	vaultWords  = netloop.NewRPC[vault](vaultSchema, "words")
)

// vaultGame shows a secret in each tick, and sends another one to all clients.
type vaultGame struct{ shown, said func(tick uint64) string }

func (vaultGame) Schema() *netloop.Schema { return vaultSchema }

func (g vaultGame) Open(r *netloop.Room) error {
	var v *netloop.Object[vault]
	r.OnStart(func(t *netloop.Tick) { v = vaults.Spawn(t, vault{}) })
	r.On(netloop.Update, "test.secrets", func(t *netloop.Tick) {
		v.Edit(t).Secret = g.shown(t.Number())
		vaultWords.Send(t, netloop.Everyone(), vault{Secret: g.said(t.Number())})
	})
	return nil
}

// secret returns unguessable texts, a different one for each tick and kind.
func secret(kind uint64) func(tick uint64) string {
	return func(tick uint64) string {
		rng := rand.New(rand.NewPCG(kind, tick))
		return fmt.Sprintf("%016x", rng.Uint64())
	}
}

// screened is a room with delayed spectators. The test drives the room's ticks; those of the
// spectator room follow its schedule.
type screened struct {
	*bare
	shows    *room.Room
	schedule loop.Schedule
	epoch    loop.Epoch
	now      time.Duration
	starts   map[uint64]time.Duration // of the room's ticks
	ran      []loop.Input             // ticks of the spectator room
}

const screenDelay = 500 * time.Millisecond

func newScreened(t *testing.T, g netloop.Game) *screened {
	t.Helper()
	spec := netloop.RoomSpec{Rate: netloop.Hz(20), MaxSpectators: 3, SpectatorDelay: screenDelay}
	s := &screened{bare: newBareOf(t, netloop.Config{Room: spec}, g), starts: map[uint64]time.Duration{}, now: time.Hour}
	s.shows = s.server.SpectatorRoom
	s.schedule = s.shows.Schedule()
	s.epoch = loop.Epoch{Tick: 1, At: s.now}
	return s
}

// play runs the room's next tick, late by the given time.
func (s *screened) play(late time.Duration) {
	s.t.Helper()
	s.tick++
	in := s.room.Timeline().Input(s.tick)
	in.Epoch, in.Deadline = s.epoch, s.room.Timeline().Deadline(s.epoch, s.tick)
	s.now = max(s.now, in.Deadline+late)
	in.Start = s.now
	s.starts[s.tick] = s.now
	if err := s.room.Step(in); err != nil {
		s.t.Fatal(err)
	}
}

// show runs the due ticks of the spectator room.
func (s *screened) show() {
	s.t.Helper()
	for {
		in, due, wait := s.schedule.Next(s.now)
		if !due {
			if wait <= s.now {
				s.t.Fatalf("at %v it waits until %v", s.now, wait)
			}
			return
		}
		s.ran = append(s.ran, in)
		if err := s.shows.Step(in); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *screened) watch() *testConn {
	s.t.Helper()
	h := hello(vaultSchema)
	h.Spectate = true
	adm, err := s.server.Handler.Admit(context.Background(), h, "here")
	if err != nil {
		s.t.Fatal(err)
	}
	return newTestConn(adm)
}

// sent returns all data sent to a client, and again shifted by 1 to 7 bits, so that a search finds
// a text at any bit offset.
func sent(g *testConn) []byte {
	var all []byte
	_ = g.SendDatagrams(func() time.Duration { return 0 }, func(b []byte) error { all = append(all, b...); return nil })
	all = g.AppendStream(all, 1<<20)
	for shift, n := 1, len(all); shift < 8; shift++ {
		for i := range n - 1 {
			all = append(all, all[i]>>shift|all[i+1]<<(8-shift))
		}
	}
	return all
}

// No data of a tick is sent to delayed spectators before the delay has passed since the tick
// began, neither state nor messages, however late ticks run; after the delay all of it is sent.
func TestNothingYoungerThanTheDelayLeaves(t *testing.T) {
	kinds := [2]func(uint64) string{secret(1), secret(2)}
	s := newScreened(t, vaultGame{kinds[0], kinds[1]})
	rng := rand.New(rand.NewPCG(5, 5))
	var conns []*testConn
	found := [2]int{}
	for range 60 {
		s.play(time.Duration(rng.IntN(40)) * time.Millisecond)
		for range 4 { // The schedule may be asked at any time.
			s.now += time.Duration(rng.IntN(12)) * time.Millisecond
			s.show()
			if len(conns) < 3 {
				conns = append(conns, s.watch())
			}
			for _, g := range conns {
				b := sent(g)
				for tick := range s.tick {
					for k, secret := range kinds {
						there := bytes.Contains(b, []byte(secret(tick+1)))
						if age := s.now - s.starts[tick+1]; there && age < screenDelay {
							t.Fatalf("a secret of tick %d leaves after %v", tick+1, age)
						}
						if there {
							found[k]++
						}
					}
				}
			}
		}
	}
	if found[0] < 10 || found[1] < 100 {
		t.Errorf("secrets that left were found %d times in the state and %d times in messages", found[0], found[1])
	}
}

// A tick of the spectator room has the number of the room's tick, and is due after the delay: also
// after dropped ticks, which move the epoch in both rooms, and after a pause of the room.
func TestASpectatorRoomTicksAsItsRoomDid(t *testing.T) {
	s := newScreened(t, vaultGame{secret(1), secret(2)})
	g := s.watch()
	period := s.room.Timeline().Rate.Period()
	for n := range 100 {
		if n == 50 { // The room drops ten ticks.
			s.epoch = loop.Epoch{Tick: s.tick + 1, At: s.room.Timeline().Deadline(s.epoch, s.tick+11)}
		}
		for due := s.room.Timeline().Deadline(s.epoch, s.tick+1); s.now+time.Millisecond < due; {
			s.now += time.Millisecond
			s.show()
		}
		s.play(0)
	}
	if len(s.ran) < 80 || s.ran[0].Tick != 1 || !s.ran[0].EpochMoved {
		t.Fatalf("it ran %d ticks, the first one with %+v", len(s.ran), s.ran[0])
	}
	for i, in := range s.ran {
		at := s.starts[in.Tick] + screenDelay
		moved := i == 0 || in.Tick == 51
		if in.Slept != 0 || in.Start < at || in.Start > at+2*time.Millisecond || in.Deadline > in.Start || in.Deadline < in.Start-period || in.EpochMoved != moved {
			t.Errorf("tick %d of the room began at %v, and is shown with %+v", in.Tick, s.starts[in.Tick], in)
		}
		if i > 0 && in.Tick != s.ran[i-1].Tick+1 {
			t.Errorf("tick %d follows tick %d", in.Tick, s.ran[i-1].Tick)
		}
	}
	if _, ended := g.Cause(); ended {
		t.Error("the spectator has gone")
	}
}

// Without spectators the spectator room catches up once a second, in one tick. A new spectator is
// admitted at once, sees the state shown then, and from then on each tick.
func TestAnUnwatchedRoomShowsOneTickASecond(t *testing.T) {
	s := newScreened(t, vaultGame{secret(1), secret(2)})
	for range 100 { // Five seconds.
		s.play(0)
		s.show()
	}
	if n := len(s.ran); n < 3 || n > 6 {
		t.Errorf("it ran %d ticks in 4.5 s in which nobody was there", n)
	}
	before := len(s.ran)
	s.watch()
	s.show()
	if n := len(s.ran); n != before+1 || s.ran[before].Tick < s.tick-11 {
		t.Fatalf("at tick %d it runs %d ticks for who comes, up to %d", s.tick, n-before, s.ran[n-1].Tick)
	}
	for range 20 {
		s.play(0)
		s.show()
	}
	for _, in := range s.ran[before+1:] {
		if in.Slept != 0 {
			t.Errorf("it leaves out %d ticks before tick %d", in.Slept, in.Tick)
		}
	}
}

// The delay buffer is bounded. While it is full, the spectator feed gets no snapshots, and then
// one with the changes since; the messages of that time are lost and counted.
func TestAFullDelayBufferKeepsNoMore(t *testing.T) {
	s := newScreened(t, vaultGame{secret(1), secret(2)})
	const most = 4 << 10
	s.room.SetDelayBuffer(most)
	s.watch()
	largest := 0
	for range 40 {
		s.play(0)
		s.show()
		largest = max(largest, s.room.DelayBuffer())
	}
	if largest < most/2 || largest > most+1<<10 {
		t.Errorf("up to %d bytes wait where %d may", largest, most)
	}
	for _, reason := range []string{"full", "message"} {
		if line := fmt.Sprintf(`netloop_queue_drops_total{queue="reel",reason=%q}`, reason); !strings.Contains(s.scrape(), line) {
			t.Errorf("the metrics do not say %s", line)
		}
	}
	s.room.SetDelayBuffer(1 << 20)
	for range 20 {
		s.play(0)
		s.show()
	}
	late := s.watch()
	s.play(0)
	s.show()
	if b := sent(late); !bytes.Contains(b, []byte(secret(1)(s.ran[len(s.ran)-1].Tick))) {
		t.Error("after that who comes is not sent the state of the tick that is shown")
	}
}
