package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Config configures a Recording.
type Config struct {
	Name string // of the file, for people
	File io.ReaderAt
	Size int64
	// Replay opens the recorded game, and reads the file from its start.
	Replay func(io.ReadSeeker) (*room.Replay, error)
	// Temp is the folder of the temporary file; empty is the system's.
	Temp string

	maxTicks int // for tests; 0 is the constant
}

// Recording is a recording that is replayed once, in the background. Its answers cover the ticks
// that have been replayed so far. Any goroutine may use it.
type Recording struct {
	cfg    Config
	head   recording.Head
	schema *schema.Schema
	spec   room.Spec
	store  *store
	lanes  *lanes

	replay   *room.Replay // belongs to the goroutine of the replay
	tracker  *tracker     // the same
	progress *progress
	withheld bool // answers have no fields with read rules, and no content of messages
	cancel   context.CancelFunc
	done     chan struct{}
}

// progress is the state of a replay.
type progress struct {
	read    atomic.Int64 // bytes of the file that have been replayed
	outcome atomic.Pointer[Outcome]
}

// Outcome is the result of a replay so far.
type Outcome struct {
	// State is the kind of the outcome, one of the constants.
	State string `json:"state"`
	// Tick is the tick at which the replay has ended, 0 while it runs.
	Tick uint64 `json:"tick"`
	// Text is the outcome in words.
	Text string `json:"text"`
	// Recorded and Replayed are the different digests of a tick, if digests differ.
	Recorded string `json:"recorded,omitempty"`
	Replayed string `json:"replayed,omitempty"`
}

// The kinds of outcomes. The replayed ticks equal the recorded ones, except for the last tick of
// Diverged.
const (
	Replaying  = "replaying"  // the replay is under way
	Identical  = "identical"  // all ticks are as recorded
	Diverged   = "diverged"   // a tick differs: the game has other code, or reads unrecorded facts
	Unrecorded = "unrecorded" // a tick depends on something that a recording cannot hold
	Truncated  = "truncated"  // the file ends within a tick
	Damaged    = "damaged"    // the file is damaged
	Limited    = "limited"    // the history is full
	Failed     = "failed"     // the game has panicked, or the temporary file cannot be written
	Closed     = "closed"     // the recording was closed before the end of its replay
	Kept       = "kept"       // there is no replay: the ticks are those of a running server
)

// Open opens a recording, and begins its replay. Close ends it.
func Open(cfg Config) (*Recording, error) {
	in, b, err := recording.NewReader(io.NewSectionReader(cfg.File, 0, cfg.Size))
	if err != nil {
		return nil, err
	}
	head, err := recording.ReadHead(b)
	if err != nil {
		return nil, err
	}
	replay, err := cfg.Replay(io.NewSectionReader(cfg.File, 0, cfg.Size))
	if err != nil {
		return nil, err
	}
	cfg.maxTicks = cmp.Or(cfg.maxTicks, maxTicks)
	r := replay.Room()
	if head.Kept {
		return openKept(cfg, head, in, r)
	}
	table := r.Schema().Classes()
	st, err := newStore(table, cfg.Temp, cfg.maxTicks)
	if err != nil {
		return nil, err
	}
	rec := &Recording{
		cfg: cfg, head: head, schema: r.Schema(), spec: r.Spec(), store: st, lanes: newLanes(),
		replay: replay, tracker: newTracker(table), progress: new(progress), done: make(chan struct{}),
	}
	rec.progress.outcome.Store(&Outcome{State: Replaying, Text: "the replay is under way"})
	ctx, cancel := context.WithCancel(context.Background())
	rec.cancel = cancel
	go rec.run(ctx, in)
	return rec, nil
}

// Close ends the replay after its running tick, and removes the temporary file. No other method may
// run or be called later.
func (r *Recording) Close() error {
	r.cancel()
	<-r.done
	return r.store.file.Close()
}

// stop ends the replay after its running tick, and reports whether it was under way. The answers
// cover the ticks up to there.
func (r *Recording) stop() bool {
	r.cancel()
	<-r.done
	return r.Outcome().State == Closed
}

// Outcome returns the result so far.
func (r *Recording) Outcome() Outcome { return *r.progress.outcome.Load() }

// run replays the recording until its end, or that of ctx.
func (r *Recording) run(ctx context.Context, in *recording.Reader) {
	defer close(r.done)
	defer func() {
		v := recover() // a panic outside of systems; the room recovers those of systems itself
		if v != nil {
			r.end(Failed, "the game has panicked: %v", v)
		}
	}()
	for rec, err := range recording.Ahead(in) {
		if ctx.Err() != nil {
			break
		}
		if !r.step(&rec, err) {
			return
		}
	}
	r.end(Closed, "the recording was closed")
}

// step replays a tick, or handles the error after the last one. It reports false at the end.
func (r *Recording) step(rec *recording.Decoded, err error) bool {
	if err == nil {
		_, err = r.replay.Play(rec.Tick)
	}
	var differs *room.Divergence
	var unrecorded *room.Unrecorded
	switch {
	case err == nil, errors.As(err, &differs):
		if err := r.observe(rec); err != nil {
			r.limit(err)
			return false
		}
		if differs != nil {
			r.diverge(differs)
		}
		return differs == nil
	case errors.Is(err, io.EOF):
		r.end(Identical, "all ticks are as recorded")
	case errors.As(err, &unrecorded):
		r.end(Unrecorded, "tick %d cannot be replayed, because it has unrecorded input: %s", unrecorded.Tick, unrecorded.What[0])
	case errors.Is(err, recording.ErrTruncated):
		r.end(Truncated, "%v; all ticks up to there are as recorded", err)
	default:
		r.end(Damaged, "%v; all ticks up to there are as recorded", err)
	}
	r.progress.read.Store(r.cfg.Size)
	return false
}

// observe adds the tick that was just replayed to the history.
func (r *Recording) observe(rec *recording.Decoded) error {
	world, in := r.replay.Room().World(), &rec.Tick.Input
	info := tickInfo{tick: in.Tick, record: rec.Offset, late: int64(in.Start - in.Deadline)}
	info.changes = r.tracker.observe(world, info.tick)
	info.arrivals = r.lanes.observe(r.replay.Room(), rec.Tick)
	if err := r.store.append(info, func(dst []byte) []byte { return r.tracker.appendChanges(dst, info.tick) }); err != nil {
		return err
	}
	r.progress.read.Store(rec.Offset)
	return r.store.appendKeyframe(func(dst []byte) []byte { return r.tracker.appendKeyframe(dst, world) })
}

// limit ends the replay because the history cannot store the next tick.
func (r *Recording) limit(err error) {
	if errors.Is(err, errLimit) {
		r.end(Limited, "%v; all ticks up to there are as recorded", err)
		return
	}
	r.end(Failed, "%v", err)
}

func (r *Recording) diverge(d *room.Divergence) {
	text := fmt.Sprintf("tick %d differs from the recorded one: %s. All ticks before are as recorded, this one and later ones are not known", d.Tick, d.What)
	out := &Outcome{State: Diverged, Tick: d.Tick, Text: text}
	if d.Recorded != d.Replayed {
		out.Recorded, out.Replayed = fmt.Sprintf("%016x", d.Recorded), fmt.Sprintf("%016x", d.Replayed)
	}
	r.lanes.flush()
	r.progress.outcome.Store(out)
}

// end publishes the outcome.
func (r *Recording) end(state, format string, a ...any) {
	r.lanes.flush()
	out := &Outcome{State: state, Text: fmt.Sprintf(format, a...)}
	if n := r.store.ticks.len(); n > 0 {
		out.Tick = r.store.ticks.at(n - 1).tick
	}
	r.progress.outcome.Store(out)
}
