package room

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/transport"
)

// A screening is the room of the delayed spectators of another room. It has seats, clients,
// snapshots and a goroutine as each room, and no game: its world mirrors the data of the other
// room's spectator feed, and its tick n is that room's tick n, after the delay. Its clients need
// no special case: they are told an epoch that is later by the delay, from which they derive all
// times.
//
//	camera ─▶ reel ─▶ Next: which tick ─▶ RunTimers: show ─▶ mirror ─▶ snapshot ─▶ spectators
//
// Events between two ticks of the other room (a spectator joins while that room sleeps) get a tick
// with a number between theirs. If many shots are due at once, because there were no spectators or
// the machine paused, one tick shows all of them.
type screening struct {
	loop.Clock
	r       *Room // its own engine
	of      *Room // the room that it shows
	reel    *reel
	mirror  *netvar.Mirror
	loop    shownLoop
	now     loop.Now
	last    uint64     // its newest tick, 0 = none
	epoch   loop.Epoch // epoch of the other room, as of that tick
	pending int        // number of shots that the next tick shows
}

// shownLoop is the loop of a screening: scaled time runs as it did in the other room.
type shownLoop struct {
	*loop.Loop[struct{}]
	scale loop.Scale
}

// Scale returns the scale of scaled time.
func (l *shownLoop) Scale() loop.Scale { return l.scale }

// Screening opens the room of the delayed spectators of this one; nil if it has no delay. It is
// called before the first tick, and both rooms have to be started.
func (r *Room) Screening() (*Room, error) {
	if !r.delayed() {
		return nil, nil
	}
	s := &screening{Clock: r.clock, of: r, reel: &reel{delay: r.spec.SpectatorDelay, most: maxReel}}
	s.loop = shownLoop{loop.New(struct{}{}, &s.now, r.clock.Now), loop.Unscaled}
	cfg := r.cfg
	cfg.Spec.MaxClients, cfg.Spec.SpectatorDelay = 0, 0
	cfg.Spec.MaxRewind, cfg.Spec.CloseEmpty = 0, 0
	cfg.Spec.Sleep = true
	cfg.Game, cfg.Server, cfg.Tick, cfg.Loop, cfg.Now = s, usher{cfg.Server}, nil, &s.loop, &s.now
	cfg.Log = cfg.Log.With("screening", r.spec.SpectatorDelay)
	cfg.Detail, cfg.CheckEdits, cfg.CheckValues = false, false, false
	var err error
	if s.r, err = New(cfg); err != nil {
		return nil, err
	}
	s.r.moves = r.moves
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
	s.reel.rouse = s.r.rouse
	r.camera.reel, r.shown = s.reel, s.r
	return s.r, nil
}

// usher is the server of a screening: it ignores EndAdmission and Ticked, so that the end of a
// screening does not affect the played room.
type usher struct{ Server }

func (usher) EndAdmission(transport.Code, string) {}
func (usher) Ticked()                             {}

// unwatched is for how long due shots wait while there are no spectators. A new spectator waits no
// longer than that to be shown.
const unwatched = time.Second

// Next implements loop.Schedule: the next tick is that of the oldest shot, once that is old
// enough, or an earlier one if a spectator needs a tick before.
func (s *screening) Next(now time.Duration) (in loop.Input, isDue bool, wait time.Duration) {
	then := now - s.reel.delay
	watched := len(s.r.clients.list) > 0 || s.r.roused()
	d := s.reel.due(then, watched)
	switch {
	case d.count == 0:
		return s.between(now, then, &d)
	case !watched && !d.ended && then < d.first.at+unwatched:
		return in, false, d.first.at + unwatched + s.reel.delay
	case watched && d.count <= loop.DefaultBurst:
		d.last, d.count = d.first, 1
	}
	s.pending = d.count
	return s.input(max(d.last.tick, s.last+1), d.last.epoch, now), true, 0
}

// between is Next while no shot is due.
func (s *screening) between(now, then time.Duration, d *due) (in loop.Input, isDue bool, wait time.Duration) {
	wait = now + longestSleep
	if d.any {
		wait = d.first.at + s.reel.delay
	}
	if s.last == 0 {
		return in, false, wait // There is no shot yet, and so no time either.
	}
	line, next := s.r.Timeline(), s.last+1
	tick := max(line.Due(s.epoch, then), next)
	if s.r.sleep.asleep {
		tick = s.r.nextDue(tick)
	}
	if d.any && tick >= d.first.tick && !s.mustEnd(then, d) {
		if tick = d.first.tick - 1; tick < next || s.r.sleep.asleep && !s.r.roused() {
			return in, false, wait
		}
	}
	if tick == loop.Never {
		return in, false, wait
	}
	at := line.Deadline(s.epoch, tick)
	if at > then {
		return in, false, min(at+s.reel.delay, wait)
	}
	return s.input(tick, s.epoch, now), true, 0
}

// mustEnd reports whether the screening ends and the next shot is far away: the end does not wait
// for that shot.
func (s *screening) mustEnd(then time.Duration, d *due) bool {
	return s.r.ending && d.first.at-then > time.Second
}

// input returns the input of the next tick, in an epoch of the other room.
func (s *screening) input(tick uint64, of loop.Epoch, now time.Duration) loop.Input {
	line, epoch := s.r.Timeline(), loop.Epoch{Tick: of.Tick, At: of.At + s.reel.delay}
	in := line.Input(tick)
	in.Start, in.Deadline = now, line.Deadline(epoch, tick)
	in.Epoch, in.EpochMoved = epoch, of != s.epoch
	in.Slept = tick - s.last - 1
	s.last, s.epoch = tick, of
	return in
}

// WaitUntil implements loop.Clock: a longer wait ends if a spectator joins.
func (s *screening) WaitUntil(ctx context.Context, at time.Duration) error {
	if left := at - s.Now(); s.r.sleep.asleep || left > unwatched {
		s.r.waitForWork(ctx, left)
		return ctx.Err()
	}
	return s.Clock.WaitUntil(ctx, at)
}

// RunTimers implements Game: it shows the due shots.
func (s *screening) RunTimers() {
	for ; s.pending > 0; s.pending-- {
		shot := s.reel.take()
		if err := s.show(&shot); err != nil {
			s.r.log.Error("what a camera was sent cannot be shown", "tick", shot.tick, "error", err)
			s.r.Close(transport.CodeInternal, "the server has failed")
			return
		}
	}
	if !s.mirror.Show(s.r.now.Tick) {
		s.r.markActive() // The next tick shows the rest.
	}
}

// show applies one shot: each but the last of a tick becomes a version of its own, as in the other
// room.
func (s *screening) show(shot *shot) error {
	for _, packet := range shot.packets {
		if err := s.mirror.Apply(packet); err != nil {
			return fmt.Errorf("a packet: %w", err)
		}
	}
	for _, record := range shot.large {
		if err := s.mirror.ApplyLarge(record); err != nil {
			return fmt.Errorf("a large record: %w", err)
		}
	}
	if shot.scale != nil {
		s.loop.scale = *shot.scale
	}
	for _, m := range shot.messages {
		for _, c := range s.r.clients.list {
			c.Send(m)
		}
	}
	if shot.end != nil {
		s.r.Close(shot.end.Code, shot.end.Text)
		return nil
	}
	if r := s.r; s.pending > 1 && shot.tick > r.captured && shot.tick < r.now.Tick {
		s.mirror.Show(shot.tick)
		r.world.Capture(shot.tick)
		r.captured = shot.tick
	}
	return nil
}

// TimersDue implements Game. Next handles the times of shots.
func (s *screening) TimersDue(loop.Scale) time.Duration { return math.MaxInt64 }

// Admit implements Game: the game of the other room decides.
func (s *screening) Admit(ctx context.Context, j *Join) error { return s.of.game.Admit(ctx, j) }

// The rest of Game is empty: there is no game.

// Start implements Game.
func (*screening) Start() {}

// Enter implements Game.
func (*screening) Enter(*Client) {}

// Join implements Game.
func (*screening) Join(*Client) error { return nil }

// Drop implements Game.
func (*screening) Drop(*Client) {}

// Resume implements Game.
func (*screening) Resume(*Client) {}

// Move implements Game.
func (*screening) Move(*Client) {}

// Leave implements Game.
func (*screening) Leave(*Client, *transport.Closed) {}

// Left implements Game.
func (*screening) Left(*Client) {}

// Keeps implements Game.
func (*screening) Keeps(*netvar.Object) bool { return false }

// Drain implements Game.
func (*screening) Drain(time.Duration) {}

// Close implements Game.
func (*screening) Close(context.Context) error { return nil }

// AppendJoin implements Game.
func (*screening) AppendJoin(b []byte, _ *Join) ([]byte, error) { return b, nil }

// ReadJoin implements Game.
func (*screening) ReadJoin([]byte, *Join) error { return nil }
