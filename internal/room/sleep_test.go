package room_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// sleeper is a room that sleeps when idle, in a bubble of virtual time.
func sleeper(t *testing.T, spec netloop.RoomSpec, g bareGame) (*bare, <-chan error) {
	t.Helper()
	spec.Sleep, spec.Rate = true, netloop.Hz(100)
	b := newBareAs(t, netloop.Config{Room: spec}, g)
	ends := b.started(t.Context())
	time.Sleep(10 * time.Second)
	synctest.Wait()
	if !b.room.Sleep.Asleep() {
		t.Fatal("it does not sleep")
	}
	return b, ends
}

// listed returns how many seats of the room are listed as taken.
func (b *bare) listed() int {
	b.t.Helper()
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
	for _, l := range netloop.ListRooms(b.s, netloop.RoomFilter[struct{}]{}) {
		return l.Players
	}
	b.t.Error("the room is not listed")
	return -1
}

// end ends the room.
func (b *bare) end(ends <-chan error) {
	b.t.Helper()
	b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}})
	if err := <-ends; err != nil {
		b.t.Error(err)
	}
}

// A reservation in a sleeping room is listed, and so is the free seat after its expiry.
func TestReservationsOfARoomThatSleepsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ends := sleeper(t, netloop.RoomSpec{}, func(*netloop.Room) {})
		if n := b.listed(); n != 0 {
			t.Fatalf("%d seats are listed as taken", n)
		}
		for i, ttl := range []time.Duration{10 * time.Second, 20 * time.Second} {
			if _, err := b.room.Admission.Reserve(room.Reservation{Seats: 2, TTL: ttl}); err != nil {
				t.Fatal(err)
			}
			if n := b.listed(); n != 2*(i+1) {
				t.Errorf("%d seats are listed as taken, want %d", n, 2*(i+1))
			}
		}
		for _, want := range []int{2, 0} {
			time.Sleep(10 * time.Second)
			if n := b.listed(); n != want {
				t.Errorf("%d seats are listed as taken, want %d", n, want)
			}
		}
		if !b.room.Sleep.Asleep() {
			t.Error("the room does not sleep after the last ticket has expired")
		}
		b.end(ends)
	})
}

// A ticket that expires during the admission of its client frees its seat if the admission fails:
// the room wakes and lists the seat as free.
func TestATicketThatExpiresInItsAdmissionIsListedAsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ends := sleeper(t, netloop.RoomSpec{}, func(r *netloop.Room) {
			r.OnAdmit(func(context.Context, *netloop.Join) error {
				time.Sleep(5 * time.Second)
				return errors.New("not today")
			})
		})
		tickets, err := b.room.Admission.Reserve(room.Reservation{Seats: 1, TTL: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		done := make(chan error, 1)
		go func() {
			h := hello(bareSchema)
			h.Ticket = tickets[0]
			_, err := b.server.Handler.Admit(t.Context(), h, "here")
			done <- err
		}()
		time.Sleep(3 * time.Second)
		if n, asleep := b.listed(), b.scraped(`netloop_rooms_asleep{kind=""} 1`); n != 1 || !asleep {
			t.Errorf("%d seats are listed as taken while the client is being admitted; asleep: %v", n, asleep)
		}
		if err := <-done; err == nil {
			t.Error("the client is admitted")
		}
		if n := b.listed(); n != 0 {
			t.Errorf("%d seats are listed as taken", n)
		}
		b.end(ends)
	})
}

// A room that is awake again counts as awake.
func TestAWokenRoomIsCountedAsAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ends := sleeper(t, netloop.RoomSpec{}, func(*netloop.Room) {})
		if !b.scraped(`netloop_rooms_asleep{kind=""} 1`) {
			t.Error("the sleeping room is not counted")
		}
		b.joinFrom("192.0.2.1:1") // Until a second after it has joined, the room is awake.
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if b.room.Sleep.Asleep() || !b.scraped(`netloop_rooms_asleep{kind=""} 0`) {
			t.Error("the room is counted as asleep, and is awake")
		}
		b.end(ends)
	})
}

// A sleeping room that is told to end runs its last tick at the current game time, and counts the
// skipped ticks as slept and not as dropped.
func TestARoomThatSleepsEndsInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var drained, last time.Duration
		b, ends := sleeper(t, netloop.RoomSpec{}, func(r *netloop.Room) {
			r.On(netloop.Update, "test.time", func(tick *netloop.Tick) { last = tick.GameTime() })
			r.OnDrain(func(tick *netloop.Tick, _ time.Duration) { drained = tick.GameTime() })
		})
		time.Sleep(50 * time.Second)
		slept := last
		b.end(ends)
		if slept > 2*time.Second || last < 59*time.Second || last > 61*time.Second {
			t.Errorf("it slept from %v on, was drained at %v, and ran its last tick at %v, want 60s", slept, drained, last)
		}
		if !b.scraped("netloop_dropped_ticks_total 0") {
			t.Error("it counts ticks as dropped")
		}
	})
}

// CloseEmpty restarts while a seat is reserved, for a player or a spectator, delayed or not.
func TestARoomWithReservedSeatsIsNotEmpty(t *testing.T) {
	for name, spec := range map[string]netloop.RoomSpec{
		"to play": {}, "to watch": {MaxSpectators: 1}, "to watch with a delay": {MaxSpectators: 1, SpectatorDelay: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { closesAfterReservations(t, spec) })
		})
	}
}

func closesAfterReservations(t *testing.T, spec netloop.RoomSpec) {
	began := time.Now()
	var closed atomic.Bool
	spec.Sleep, spec.CloseEmpty = true, 20*time.Second
	b := newBareAs(t, netloop.Config{Room: spec}, func(r *netloop.Room) {
		r.OnClose(func(context.Context, *netloop.Closed) error { closed.Store(true); return nil })
	})
	ends := b.started(t.Context())
	time.Sleep(10 * time.Second)
	if _, err := b.s.Reserve(t.Context(), "", netloop.Reservation{Spectator: spec.MaxSpectators > 0, TTL: 55 * time.Second}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(54 * time.Second)
	if closed.Load() {
		t.Error("it has closed while a seat was reserved")
	}
	if err := <-ends; err != nil {
		t.Error(err)
	}
	// At 20, 40 and 60 s a seat was reserved.
	if took := time.Since(began); took < 79*time.Second || took > 85*time.Second {
		t.Errorf("it has closed after %v", took)
	}
	if _, err := b.room.Admission.Reserve(room.Reservation{Seats: 1, TTL: time.Second}); err == nil {
		t.Error("a seat of a room that has ended is reserved")
	}
}

// A reservation for a spectator takes no seat of a player, and no tick once it has expired, also
// with delayed spectators, which have a room of their own.
func TestAReservationToWatchIsNoPlayer(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "with a delay": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, ends := sleeper(t, netloop.RoomSpec{MaxClients: 1, MaxSpectators: 2, SpectatorDelay: delay}, func(*netloop.Room) {})
				clock := &countedClock{bubbleClock: bubbleClock{time.Now()}}
				shown := make(chan error, 1)
				if shows := b.server.SpectatorRoom; shows != nil {
					b.server.UseClock(clock)
					shows.Supervisor.Start(t.Context(), func(err error) { shown <- err })
				} else {
					shown <- nil
				}
				if _, err := b.s.Reserve(t.Context(), "", netloop.Reservation{Spectator: true, Seats: 2, TTL: time.Minute}); err != nil {
					t.Fatal(err)
				}
				if n := b.listed(); n != 0 {
					t.Errorf("%d seats of players are listed as taken", n)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				before := clock.reads.Load()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := clock.reads.Load() - before; n > 100 {
					t.Errorf("the clock is read %d times in ten minutes in which nothing happens", n)
				}
				b.end(ends)
				if err := <-shown; err != nil {
					t.Log(err) // The end of the server's context is one.
				}
			})
		})
	}
}

// countedClock counts its reads.
type countedClock struct {
	bubbleClock
	reads atomic.Int64
}

func (c *countedClock) Now() time.Duration {
	c.reads.Add(1)
	return c.bubbleClock.Now()
}

// A client that was admitted before the room was told to end, and enters during the drain, is told
// the remaining time: also in a room that had slept for longer than that.
func TestAClientThatJoinsInADrainIsToldItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, ends := sleeper(t, netloop.RoomSpec{}, func(*netloop.Room) {})
		adm, err := b.server.Handler.Admit(t.Context(), hello(bareSchema), "here")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}, Drain: 10 * time.Second})
		g := newTestConn(adm)
		time.Sleep(time.Second)
		synctest.Wait()
		var left []time.Duration
		for _, a := range heard(t, g) {
			if a.Kind == transport.WillClose {
				left = append(left, time.Duration(a.Value))
			}
		}
		if len(left) != 1 || left[0] < 9*time.Second || left[0] > 10*time.Second {
			t.Errorf("it is told of an end in %v", left)
		}
		if err := <-ends; err != nil {
			t.Error(err)
		}
	})
}

// A message that waits for a tick of a room that ends is answered: its sender is told that it is
// lost, and may send as many as before.
func TestAMessageToARoomThatEndsIsAnswered(t *testing.T) {
	heard := 0
	b := newBare(t, func(r *netloop.Room) {
		bareWords.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, struct{ N uint64 }) error { return nil })
	})
	if _, err := b.s.OpenRoom(t.Context(), netloop.RoomSpec{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	b.step()
	if err := b.inspect(func(tick *netloop.Tick) {
		bareWords.SendRoom(tick, "", struct{ N uint64 }{}, func(_ *netloop.Tick, err error) {
			if heard++; err == nil {
				t.Error("it has run")
			}
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.room.Shutdown.Finish(netloop.CodeClosing, "bye"); err != nil {
		t.Fatal(err)
	}
	if heard != 1 || !b.scraped(`netloop_queue_drops_total{queue="room_message",reason="room_gone"} 1`) {
		t.Errorf("its sender has heard %d answers", heard)
	}
}
