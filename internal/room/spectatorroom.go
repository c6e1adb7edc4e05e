package room

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
)

// A spectatorRoom is the room of the delayed spectators of another room. Like each room it has
// seats, clients, snapshots and a goroutine, but it has no game: its world mirrors the data of the
// other room's spectator feed, and its tick n shows the other room's tick n after the delay. Its
// clients need no special case: they are sent an epoch that is later by the delay, and derive all
// times from it.
//
//	feed ─▶ delay buffer ─▶ Next: which tick ─▶ RunTimers: show ─▶ mirror ─▶ spectators
//
// For an event between two ticks of the other room (a spectator joins while that room sleeps) the
// spectator room runs a tick with a number between theirs. If many ticks are due at once, because
// there were no spectators or the machine paused, one tick shows them all.
type spectatorRoom struct {
	loop.Clock
	r       *Room // its own engine
	of      *Room // the room that it shows
	buffer  *delayBuffer
	mirror  *netvar.Mirror
	loop    mirrorLoop
	now     loop.Now
	last    uint64     // newest tick of the spectator room; 0: none
	epoch   loop.Epoch // epoch of the other room at that tick
	pending int        // number of stored ticks that the next tick shows
}

// mirrorLoop is the loop of a spectator room: its scaled time is the scaled time of the other room.
type mirrorLoop struct {
	*loop.Loop[struct{}]
	scale loop.Scale
}

// Scale returns the scale of scaled time.
func (l *mirrorLoop) Scale() loop.Scale { return l.scale }

// OpenSpectatorRoom opens the room of this room's delayed spectators, or returns nil if this room
// has no delay. Call it before the first tick, and start both rooms.
func (r *Room) OpenSpectatorRoom() (*Room, error) {
	if !r.spec.delayed() {
		return nil, nil
	}
	s := &spectatorRoom{Clock: r.clock, of: r, buffer: &delayBuffer{delay: r.spec.SpectatorDelay, most: maxDelayBuffer}}
	s.loop = mirrorLoop{loop.New(struct{}{}, &s.now, r.clock.Now), loop.Unscaled}
	cfg := r.cfg
	cfg.Spec = r.spec.ofSpectatorRoom()
	cfg.Game, cfg.Server, cfg.Tick, cfg.Loop, cfg.Now = s, spectatorServer{cfg.Server}, nil, &s.loop, &s.now
	cfg.Log = cfg.Log.With("spectator_delay", r.spec.SpectatorDelay)
	cfg.Detail, cfg.CheckEdits, cfg.CheckValues = false, false, false
	var err error
	if s.r, err = New(cfg); err != nil {
		return nil, err
	}
	s.r.Admission.moves = r.Admission.moves
	s.mirror = netvar.NewMirror(s.r.world, r.world)
	s.r.newSchedule = func() (loop.Clock, loop.Schedule) { return s, s }
	for _, sys := range s.r.Systems() {
		if _, err := s.loop.Add(loop.Spec[struct{}]{
			Name: sys.Name, Place: sys.Place, Once: sys.Stage == 0, BuiltIn: sys.Without, Critical: true,
			Ask: func(stage loop.Stage) func(struct{}) {
				if sys.Stage != 0 && sys.Stage != stage {
					return nil
				}
				return func(struct{}) { sys.Run(stage) }
			},
		}); err != nil {
			return nil, err
		}
	}
	s.buffer.rouse = s.r.Sleep.rouse
	r.feed.buffer, r.Admission.spectators = s.buffer, &s.r.Admission
	return s.r, nil
}

// spectatorServer is the server of a spectator room: it ignores EndAdmission and Ticked, so that
// the end of a spectator room does not affect the played room.
type spectatorServer struct{ Server }

func (spectatorServer) EndAdmission(transport.Code, string) {}
func (spectatorServer) Ticked()                             {}

// unwatched is the longest time for which due ticks wait while there are no spectators. Then one
// tick shows them all, so that few ticks are waiting when a spectator joins.
const unwatched = time.Second

// Next implements loop.Schedule. The next tick shows the oldest stored tick when its age reaches
// the delay; if the spectator room has work earlier, an earlier tick runs. If many stored ticks are
// due, one tick shows them all.
func (s *spectatorRoom) Next(now time.Duration) (in loop.Input, isDue bool, wait time.Duration) {
	then := now - s.buffer.delay
	watched := len(s.r.clients.list) > 0 || s.r.roused()
	d := s.buffer.due(then, watched)
	switch {
	case d.count == 0:
		return s.between(now, then, &d)
	case !watched && !d.ended && then < d.first.at+unwatched:
		return in, false, d.first.at + unwatched + s.buffer.delay
	case watched && d.count <= loop.DefaultBurst:
		d.last, d.count = d.first, 1
	}
	s.pending = d.count
	return s.input(max(d.last.tick, s.last+1), d.last.epoch, now), true, 0
}

// between implements Next while no stored tick is due.
func (s *spectatorRoom) between(now, then time.Duration, d *due) (in loop.Input, isDue bool, wait time.Duration) {
	wait = now + longestSleep
	if d.any {
		wait = d.first.at + s.buffer.delay
	}
	if s.last == 0 {
		return in, false, wait // No tick was shown yet, so the epoch is unknown.
	}
	line, next := s.r.Timeline(), s.last+1
	tick := max(line.Due(s.epoch, then), next)
	if s.r.Sleep.asleep {
		tick = s.r.nextDue(tick)
	}
	if d.any && tick >= d.first.tick && !s.mustEnd(then, d) {
		if tick = d.first.tick - 1; tick < next || s.r.Sleep.asleep && !s.r.roused() {
			return in, false, wait
		}
	}
	if tick == loop.Never {
		return in, false, wait
	}
	at := line.Deadline(s.epoch, tick)
	if at > then {
		return in, false, min(at+s.buffer.delay, wait)
	}
	return s.input(tick, s.epoch, now), true, 0
}

// mustEnd reports whether the spectator room has to end without waiting for the next stored tick,
// because that tick is due in more than a second.
func (s *spectatorRoom) mustEnd(then time.Duration, d *due) bool {
	return s.r.Shutdown.ending && d.first.at-then > time.Second
}

// input returns the input of the spectator room's next tick, given the epoch of the other room, and
// stores that tick and epoch as the newest.
func (s *spectatorRoom) input(tick uint64, of loop.Epoch, now time.Duration) loop.Input {
	line, epoch := s.r.Timeline(), loop.Epoch{Tick: of.Tick, At: of.At + s.buffer.delay}
	in := line.Input(tick)
	in.Start, in.Deadline = now, line.Deadline(epoch, tick)
	in.Epoch, in.EpochMoved = epoch, of != s.epoch
	in.Slept = tick - s.last - 1
	s.last, s.epoch = tick, of
	return in
}

// WaitUntil implements loop.Clock. If the room sleeps and the wait is longer than unwatched, the
// wait ends early when the room is roused, for instance by a joining spectator.
func (s *spectatorRoom) WaitUntil(ctx context.Context, at time.Duration) error {
	if left := at - s.Now(); s.r.Sleep.asleep || left > unwatched {
		s.r.Sleep.waitForWork(ctx, left)
		return ctx.Err()
	}
	return s.Clock.WaitUntil(ctx, at)
}

// RunTimers implements Game: it shows the due ticks.
func (s *spectatorRoom) RunTimers() {
	for ; s.pending > 0; s.pending-- {
		data := s.buffer.take()
		if err := s.show(&data); err != nil {
			s.r.log.Error("the data of the spectator feed cannot be shown", "tick", data.tick, "error", err)
			s.r.Close(transport.CodeInternal, "the server has failed")
			return
		}
	}
	if !s.mirror.Show(s.r.now.Tick) {
		s.r.Sleep.markActive() // The next tick shows the remaining stored ticks.
	}
}

// show applies the data of one stored tick to the mirror. If a tick shows several stored ticks,
// show captures each of them except the last under its own number, so that the objects have the
// same versions as in the other room.
func (s *spectatorRoom) show(t *delayedTick) error {
	for _, packet := range t.packets {
		if err := s.mirror.Apply(packet); err != nil {
			return fmt.Errorf("a packet: %w", err)
		}
	}
	for _, record := range t.large {
		if err := s.mirror.ApplyLarge(record); err != nil {
			return fmt.Errorf("a large record: %w", err)
		}
	}
	if t.scale != nil {
		s.loop.scale = *t.scale
	}
	for _, m := range t.messages {
		for _, c := range s.r.clients.list {
			c.Send(m)
		}
	}
	if t.end != nil {
		s.r.Close(t.end.Code, t.end.Text)
		return nil
	}
	if r := s.r; s.pending > 1 && t.tick > r.captured && t.tick < r.now.Tick {
		s.mirror.Show(t.tick)
		r.world.Capture(t.tick)
		r.captured = t.tick
	}
	return nil
}

// TimersDue implements Game. Next handles the times of stored ticks.
func (s *spectatorRoom) TimersDue(loop.Scale) time.Duration { return math.MaxInt64 }

// Admit implements Game: the game of the other room decides.
func (s *spectatorRoom) Admit(ctx context.Context, j *Join) error { return s.of.game.Admit(ctx, j) }

// The other functions of Game do nothing, because a spectator room has no game.

func (*spectatorRoom) Start()                                       {}
func (*spectatorRoom) Enter(*Client)                                {}
func (*spectatorRoom) Join(*Client) error                           { return nil }
func (*spectatorRoom) Drop(*Client)                                 {}
func (*spectatorRoom) Resume(*Client)                               {}
func (*spectatorRoom) Role(*Client)                                 {}
func (*spectatorRoom) Move(*Client)                                 {}
func (*spectatorRoom) Leave(*Client, *transport.Closed)             {}
func (*spectatorRoom) Left(*Client)                                 {}
func (*spectatorRoom) Keeps(*state.Object) bool                     { return false }
func (*spectatorRoom) NameLost()                                    {}
func (*spectatorRoom) Drain(time.Duration)                          {}
func (*spectatorRoom) Close(context.Context) error                  { return nil }
func (*spectatorRoom) AppendJoin(b []byte, _ *Join) ([]byte, error) { return b, nil }
func (*spectatorRoom) ReadJoin([]byte, *Join) error                 { return nil }
