package room

import (
	"fmt"
	"iter"
	"slices"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/recording"
)

// Replay runs a recorded room again, tick by tick: all outside facts come from the recording, so
// there is no network, no clock and no other goroutine.
type Replay struct {
	room  *Room
	feed  *replayer
	in    *recording.Reader
	clock *clock.Virtual
	buf   []byte // scratch of send
}

// Replayed is the result of a replayed tick: its number, and the digests of its state and of the
// sent data.
type Replayed struct {
	Tick, State, Sent uint64
}

// Divergence is the error of a replay that differs from the recorded room.
type Divergence struct {
	Tick               uint64
	What               string // the difference
	Recorded, Replayed uint64 // digests, or 0
}

// Error implements error.
func (e *Divergence) Error() string { return fmt.Sprintf("tick %d differs: %s", e.Tick, e.What) }

// Unrecorded is the error of a replay at a tick that depends on something a recording cannot hold.
type Unrecorded struct {
	Tick uint64
	What []string
}

// Error implements error.
func (e *Unrecorded) Error() string { return fmt.Sprintf("tick %d: %s", e.Tick, e.What[0]) }

// NewReplay returns a replay, in room r, of the recording in. The head of in has been read. r has
// run no tick, and its clock is c.
func NewReplay(r *Room, in *recording.Reader, c *clock.Virtual) *Replay {
	return &Replay{room: r, in: in, clock: c, feed: newReplayer(r)}
}

// Step runs the next tick. The error is io.EOF after the last tick, a *Divergence, an *Unrecorded,
// or the error of a damaged or cut file.
func (p *Replay) Step() (Replayed, error) {
	b, err := p.in.Next()
	if err != nil {
		return Replayed{}, err
	}
	rec := new(recording.Tick)
	if err := recording.ReadTick(b, rec); err != nil {
		return Replayed{}, err
	}
	return p.Play(rec)
}

// Ticks runs the ticks that Step has not run yet, while another goroutine decodes the next ones. It
// ends after the first error of Step, which it yields. It is the last use of p.
func (p *Replay) Ticks() iter.Seq2[Replayed, error] {
	return func(yield func(Replayed, error) bool) {
		for rec, err := range recording.Ahead(p.in) {
			var done Replayed
			if err == nil {
				done, err = p.Play(rec.Tick)
			}
			if !yield(done, err) || err != nil {
				return
			}
		}
	}
}

// Play is Step for a caller that reads the file itself. rec is the record of the next tick. Play
// does not keep it.
func (p *Replay) Play(rec *recording.Tick) (Replayed, error) {
	p.feed.tick = *rec
	in := rec.Input
	if err := p.follows(&in); err != nil {
		return Replayed{}, err
	}
	if len(rec.Unrecorded) > 0 {
		return Replayed{}, &Unrecorded{in.Tick, slices.Clone(rec.Unrecorded)}
	}
	p.clock.Set(in.Start)
	if rec.Drain {
		if err := p.room.Shutdown.Drain(rec.DrainLimit); err != nil {
			return Replayed{}, err
		}
	}
	// The error only reports that the room has closed itself, which the recorded room did too.
	_ = p.room.Step(in)
	p.send()
	done := Replayed{in.Tick, p.room.world.StateDigest(), p.room.sent.take()}
	return done, p.compare(done)
}

// follows returns an error for an input that no tick after the last one has: its number and its
// times are wrong, or its steps are not those of the room's rates.
func (p *Replay) follows(in *loop.Input) error {
	last := &p.room.in
	if in.Tick != last.Tick+1+in.Slept || in.Tick == 0 {
		return fmt.Errorf("%w: tick %d follows tick %d", recording.ErrCorrupt, in.Tick, last.Tick)
	}
	want := p.room.Timeline().Input(in.Tick)
	switch {
	case in.Start < last.Start:
		return fmt.Errorf("%w: tick %d starts at %v, and tick %d at %v", recording.ErrCorrupt, in.Tick, in.Start, last.Tick, last.Start)
	case in.FixedSteps != want.FixedSteps || in.GameTime != want.GameTime || in.Delta != want.Delta:
		return fmt.Errorf("%w: tick %d has %d fixed steps at the game time %v", recording.ErrCorrupt, in.Tick, in.FixedSteps, in.GameTime)
	}
	return nil
}

// Room returns the replayed room.
func (p *Replay) Room() *Room { return p.room }

// compare returns a *Divergence if a tick differs from the recorded one; otherwise nil.
func (p *Replay) compare(t Replayed) error {
	switch rec := &p.feed.tick; {
	case p.feed.wrong != "":
		return &Divergence{Tick: t.Tick, What: p.feed.wrong}
	case t.State != rec.State:
		what := "the state"
		if named := p.room.world.NameDifference(rec.Changes); named != "" {
			what += " in " + named
		}
		return &Divergence{t.Tick, what, rec.State, t.State}
	case t.Sent != rec.Sent:
		return &Divergence{t.Tick, "what was sent", rec.Sent, t.Sent}
	}
	return nil
}

// send drains the flushed data of all sessions, as the links of the recorded room did.
func (p *Replay) send() {
	for _, c := range p.room.clients.list {
		link, ok := p.feed.links[c.session]
		if !ok {
			continue // The client is dropped.
		}
		_ = link.SendDatagrams(p.clock.Now, discard) // discard never fails.
		for p.buf = link.AppendStream(p.buf[:0], maxTake); len(p.buf) > 0; {
			p.buf = link.AppendStream(p.buf[:0], maxTake)
		}
	}
}

func discard([]byte) error { return nil }

// maxTake limits the bytes taken from a session's stream at once.
const maxTake = 1 << 16
