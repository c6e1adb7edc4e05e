package netlooptest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// PlayedRoom is one of the rooms of a world. It ticks at its own rate, while [World.Step] counts
// the ticks of the default one.
type PlayedRoom struct {
	w     *World
	in    bridge.Room
	name  string
	pacer loop.Pacer
	shows loop.Schedule // of a delayed spectator room, which World.Room does not return; else nil

	at      time.Duration // time of its next tick, or of its clients' frames that follow a tick
	frames  bool          // the next act is its clients' frames, each of the length elapsed
	elapsed time.Duration
	running bool // its tick runs: it may spend time, in which other rooms act

	draining *room.End // the running drain; nil without
	ended    *netloop.Closed
}

func (w *World) newRoom(in bridge.Room) *PlayedRoom {
	r := &PlayedRoom{w: w, in: in, name: in.Room.Spec().Name, pacer: loop.Pacer{Timeline: in.Room.Timeline()}, at: w.net.Now()}
	r.pacer.Start(r.at, loop.FirstTick)
	w.named[r.name] = r
	in.Room.Faults.OnMisuse(func(text string) { w.tb.Errorf("netlooptest: %s", text) })
	w.rooms = append(w.rooms, r)
	if s := in.SpectatorRoom; s != nil {
		w.rooms = append(w.rooms, &PlayedRoom{w: w, in: bridge.Room{Room: s, Ended: func(error) {}}, shows: s.Schedule(), at: r.at})
	}
	return r
}

// adopt adds a room that was opened.
func (w *World) adopt(in bridge.Room) {
	w.opening.Lock()
	defer w.opening.Unlock()
	w.opened = append(w.opened, in)
}

// startOpenedRooms starts the rooms that were opened since the last call.
func (w *World) startOpenedRooms() {
	w.opening.Lock()
	defer w.opening.Unlock()
	for _, in := range w.opened {
		r := w.newRoom(in)
		if w.main.ended != nil { // It was being opened when the server ended.
			r.drain(0, closing)
		}
	}
	w.opened = nil
}

// OpenRoom opens another room, as the program around the server may. A room that the game opens
// with netloop.OpenRoom starts with the first Step after its Open has returned, which another
// goroutine runs: see [World.Settle].
func (w *World) OpenRoom(spec netloop.RoomSpec) (*PlayedRoom, error) {
	w.tb.Helper()
	if _, err := w.server.Public.(*netloop.Server).OpenRoom(context.Background(), spec); err != nil {
		return nil, err
	}
	return w.Room(spec.Name), nil
}

// Room returns the room of a name: the running one, or else the one that has ended last. It fails
// the test if there was none. The default room's name is usually empty.
func (w *World) Room(name string) *PlayedRoom {
	w.tb.Helper()
	w.startOpenedRooms()
	r := w.named[name]
	if r == nil {
		w.tb.Fatalf("netlooptest: there is no room %q, and never was", name)
	}
	return r
}

// Tick calls fn with the room's tick, between two ticks: to look at its state, or to change it for
// the next tick's snapshot.
func (r *PlayedRoom) Tick(fn func(*netloop.Tick)) {
	r.w.tb.Helper()
	if err := r.in.Room.Look(func() { fn(r.in.Tick.(*netloop.Tick)) }); err != nil {
		r.w.tb.Fatalf("netlooptest: %v", err)
	}
}

// Ended returns why the room has ended: by Room.Close of the game, by Server.CloseRoom, because it
// was empty, or with the server. It is nil while the room runs.
func (r *PlayedRoom) Ended() *netloop.Closed { return r.ended }

// Drain ends the room, as Server.CloseRoom does: its clients may play on for d, while [World.Step]
// advances, and then they are told the code and the text.
func (r *PlayedRoom) Drain(d time.Duration, c netloop.Code, text string) {
	r.w.tb.Helper()
	r.drain(d, netloop.Closed{Code: c, Text: text})
}

// act runs the room with the earliest pending act, at its time.
func (w *World) act() {
	w.tb.Helper()
	w.startOpenedRooms()
	first := w.first()
	// If several ticks are due at the same moment, the network does not run between them, so that
	// their packets are sent together.
	if now := w.net.Now(); first.frames || first.at > now || w.ticked != now {
		w.advance(first.at)
	}
	w.ticked = -1
	w.server.Tell()
	first.act()
}

// first returns the room that acts first, of several the one that was opened first.
func (w *World) first() (first *PlayedRoom) {
	for _, r := range w.rooms {
		if !r.running && (first == nil || r.at < first.at) {
			first = r
		}
	}
	return first
}

// pass advances time while a room's tick runs: all other rooms act meanwhile. If no tick runs, no
// room acts.
func (w *World) pass(to time.Duration) {
	w.tb.Helper()
	for slices.ContainsFunc(w.rooms, func(r *PlayedRoom) bool { return r.running }) {
		w.startOpenedRooms()
		if r := w.first(); r == nil || r.at > to {
			break
		}
		w.act()
	}
	w.advance(to)
}

// act runs the tick that is due, or the frames of the room's clients that follow one.
func (r *PlayedRoom) act() {
	w := r.w
	w.tb.Helper()
	if r.shows != nil {
		r.screen()
		return
	}
	if r.frames {
		r.frames = false
		if r == w.main {
			w.steps++
		}
		for _, s := range w.clients {
			if !s.frozen && !s.gone && !s.frames.own && w.roomOf(s) == r {
				s.c.Step(r.elapsed)
			}
		}
		return
	}
	if r.ended == nil && r.pacer.Upcoming(w.net.Now()) > r.pacer.Coming() && r.in.Room.Sleeps(r.pacer.Coming()) {
		r.sleep()
		return
	}
	in, due, wait := r.pacer.Next(w.net.Now())
	if !due {
		r.at = wait
		return
	}
	in.Wall = w.clock().Wall()
	in.Overload = r.in.Room.Load.Next()
	period := r.pacer.Timeline.Rate.Period()
	r.frames, r.elapsed = true, period*time.Duration(1+in.Dropped)
	if r.ended == nil {
		r.tick(in)
	}
	w.ticked = w.net.Now()
	r.at = max(in.Deadline+period/2, w.net.Now())
}

// screen runs the due tick of a delayed spectator room. The frames of its spectators follow the
// ticks of the room that they have asked for.
func (r *PlayedRoom) screen() {
	now := r.w.net.Now()
	in, due, wait := r.shows.Next(now)
	if !due {
		r.at = min(wait, now+r.in.Room.Timeline().Rate.Period()) // A spectator may join.
		return
	}
	in.Wall = r.w.clock().Wall()
	in.Overload = r.in.Room.Load.Next()
	r.tick(in)
	r.w.ticked = now
}

// sleep skips the due tick, because the room sleeps. Its clients' frames follow all the same.
func (r *PlayedRoom) sleep() {
	period := r.pacer.Timeline.Rate.Period()
	due := r.pacer.Due()
	r.pacer.SkipTo(r.pacer.Coming() + 1)
	r.frames, r.elapsed = true, period
	r.at = max(due+period/2, r.w.net.Now())
}

// Asleep reports whether the room sleeps, as its RoomSpec may allow: it skips its ticks while it is
// idle.
func (r *PlayedRoom) Asleep() bool { return r.in.Room.Sleep.Asleep() }

// roomOf returns the room that sets the time of a client's frames: the client's room or the one
// that it has asked for, if it exists, or else the default one.
func (w *World) roomOf(s *seat) *PlayedRoom {
	if r := w.named[s.c.Room()]; r != nil && r.ended == nil {
		return r
	}
	return w.main
}

// tick runs one tick, and the room's end if it is due.
func (r *PlayedRoom) tick(in loop.Input) {
	w := r.w
	w.tb.Helper()
	r.checkEnd()
	r.running = true
	err := r.in.Room.Step(in)
	r.running = false
	var closed *netloop.Closed
	switch {
	case err != nil:
		if !errors.As(err, &closed) || closed.Code == netloop.CodeInternal {
			w.tb.Fatalf("netlooptest: tick %d: %v", in.Tick, err)
		}
		r.end(*closed) // The TB of a simulation continues after a Fatalf that it expects.
	case r.draining != nil && !r.in.Room.Shutdown.Lingers(in.Start):
		r.end(netloop.Closed{Code: r.draining.Why.Code, Text: r.draining.Why.Text})
	}
}

// drain begins the room's end, or shortens the time until then.
func (r *PlayedRoom) drain(limit time.Duration, why netloop.Closed) {
	r.w.tb.Helper()
	r.in.Room.Supervisor.End(room.End{Why: transport.Closed{Code: why.Code, Text: why.Text}, Drain: limit})
	if !r.running { // Otherwise its next tick begins the drain.
		r.checkEnd()
	}
}

// checkEnd starts the drain if the room was told to end, or to end earlier.
func (r *PlayedRoom) checkEnd() {
	r.w.tb.Helper()
	e := r.in.Room.Supervisor.Ending()
	if r.ended != nil || e == r.draining {
		return
	}
	r.draining = e
	r.in.Room.Admission.End(e.Why.Code, e.Why.Text)
	if err := r.in.Room.Shutdown.Drain(max(e.By-r.w.net.Now(), 0)); err != nil {
		r.w.tb.Fatalf("netlooptest: %v", err)
	}
}

// end ends the room, once: clients are told, and the game's OnLeave and OnClose run. With the
// default room the server ends.
func (r *PlayedRoom) end(why netloop.Closed) {
	w := r.w
	w.tb.Helper()
	if r.ended != nil {
		return
	}
	r.ended = &why
	r.in.Room.Admission.End(why.Code, why.Text)
	if err := r.in.Room.Shutdown.Finish(why.Code, why.Text); err != nil {
		w.tb.Errorf("netlooptest: closing the room: %v", err)
	}
	if r != w.main {
		w.rooms = slices.DeleteFunc(slices.Clone(w.rooms), func(other *PlayedRoom) bool { return other == r })
		r.in.Ended(nil)
		return
	}
	for _, other := range w.rooms {
		if other != r {
			other.drain(w.drains, closing)
		}
	}
}
