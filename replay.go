package netloop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Replay runs a recorded room again, tick by tick. It reads all external inputs from the recording,
// so it uses no network and no clock. The game's OnAdmit, OnClose and its work given to [Go] do not
// run: their results are in the recording, or do not affect any tick.
//
// Only one goroutine may use it.
type Replay struct {
	room  *Room
	e     *room.Replay
	notes map[string]string
	err   error
}

// ReplayTick is the result of a tick. Equal numbers mean equal states and equal messages.
type ReplayTick struct {
	Tick  uint64
	State uint64 // digest of all objects, as captured
	Sent  uint64 // digest of all messages and snapshots sent
}

// Divergence is the error of a replay that differs from the recorded room.
type Divergence struct {
	Tick               uint64
	What               string // the difference
	Recorded, Replayed uint64 // digests, if they differ
}

// Error returns the tick and the difference.
func (e *Divergence) Error() string {
	if e.Recorded == e.Replayed {
		return fmt.Sprintf("netloop: the replay diverges at tick %d: %s", e.Tick, e.What)
	}
	return fmt.Sprintf("netloop: the replay diverges at tick %d: %s, recorded %016x, replayed %016x", e.Tick, e.What, e.Recorded, e.Replayed)
}

// NotReplayable is the error of a replay at a tick with an input that a recording cannot contain.
type NotReplayable struct {
	Tick uint64
	What []string
}

// Error returns the tick and the cause.
func (e *NotReplayable) Error() string {
	return fmt.Sprintf("netloop: tick %d cannot be replayed, because it has unrecorded input: %s", e.Tick, e.What[0])
}

// NewReplay opens a game with the room, the rates and the seed of a recording. It uses only Log of
// the configuration. The game must have the schema of the recorded game and, to produce the same
// states, the same code and settings.
func NewReplay(cfg Config, g Game, r io.Reader) (*Replay, error) {
	in, b, err := recording.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("netloop: replay: %w", err)
	}
	head, err := recording.ReadHead(b)
	if err != nil {
		return nil, fmt.Errorf("netloop: replay: %w", err)
	}
	var config recordedConfig
	if err := json.Unmarshal(head.Config, &config); err != nil {
		return nil, fmt.Errorf("netloop: replay: the recorded configuration: %w", err)
	}
	config.Room.packed = schema.Parcel(config.Params)
	s, err := newRecorded(Config{
		Log: cfg.Log, Seed: head.Seed, Incarnation: config.Incarnation, Room: config.Room, RPC: config.RPC, LostAfter: config.LostAfter,
		CheckValues: config.CheckValues, recorded: true, travelled: config.Travels, fetched: config.Fetched,
	}, g)
	if err != nil {
		return nil, err
	}
	switch {
	case head.Schema != s.schema.s.Name:
		return nil, fmt.Errorf("netloop: replay: the recording is of another game: its schema is %q, and this one is %q", head.Schema, s.schema.s.Name)
	case !bytes.Equal(s.schema.s.Fingerprint(), head.Fingerprint):
		return nil, fmt.Errorf("netloop: replay: the recording is of another build of %q, whose classes, methods or fields differ from these: replay it with the build that recorded it", head.Schema)
	}
	recorded := clock.NewVirtual()
	s.clock.Clock = recorded
	p := &Replay{room: s.room, e: room.NewReplay(s.room.e, in, recorded), notes: head.Notes}
	if head.Kept {
		p.err = errors.New("netloop: replay: the file has the last ticks of a running room, and none before: server inspect shows it")
	}
	return p, nil
}

// newRecorded is New, but turns a panic of the game's Open into an error: g may be another game
// than the recorded one, and a program that replays several recordings must continue.
func newRecorded(c Config, g Game) (s *Server, err error) {
	defer func() {
		if v := recover(); v != nil {
			s, err = nil, fmt.Errorf("netloop: replay: the game's Open panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return New(c, g)
}

// recordedConfig is the part of Config that affects a room's ticks.
type recordedConfig struct {
	Room        RoomSpec
	Params      []byte // parameters of the room
	Incarnation uint64 // Incarnation of the room
	RPC         RPCLimits
	LostAfter   time.Duration
	CheckValues bool
	Travels     bool      `json:",omitempty"` // the server was part of a cluster
	Fetched     []fetched `json:",omitempty"` // by the game's Open, in the order of the calls
}

// head returns the head of a recording of the room, before its first tick.
func (r *Room) head() (recording.Head, error) {
	cfg := &r.server.cfg
	config, err := json.Marshal(recordedConfig{
		r.spec, []byte(r.spec.packed), r.Incarnation(), cfg.RPC, cfg.LostAfter, cfg.CheckValues, r.e.Spec().Travels, r.fetched,
	})
	return recording.Head{Config: config, Seed: r.seed, Notes: cfg.RecordNotes}, err
}

// record begins a recording of the room, before its first tick.
func (r *Room) record(w io.Writer) error {
	head, err := r.head()
	if err != nil {
		return err
	}
	return r.e.Record(w, head)
}

// Notes returns the RecordNotes of the recorded server's Config.
func (p *Replay) Notes() map[string]string { return p.notes }

// Step runs the next tick. The error is io.EOF after the last tick, a *Divergence, a
// *NotReplayable, or an error for a truncated or damaged file. After an error, every Step returns
// the same error.
func (p *Replay) Step() (ReplayTick, error) {
	if p.err != nil {
		return ReplayTick{}, p.err
	}
	return p.result(p.e.Step())
}

// Ticks runs all ticks that Step has not run yet. The loop ends after the last tick, or after the
// first error of Step other than io.EOF. It takes less time than calls of Step, because another
// goroutine decodes the next ticks meanwhile: it reads the recording only during the loop. After
// the loop, even if it has ended early, every Step returns an error.
func (p *Replay) Ticks() iter.Seq2[ReplayTick, error] {
	return func(yield func(ReplayTick, error) bool) {
		if p.err != nil {
			if !errors.Is(p.err, io.EOF) {
				yield(ReplayTick{}, p.err)
			}
			return
		}
		defer func() { p.err = cmp.Or(p.err, errLoopEnded) }()
		for done, err := range p.e.Ticks() {
			t, err := p.result(done, err)
			if errors.Is(err, io.EOF) || !yield(t, err) {
				return
			}
		}
	}
}

var errLoopEnded = errors.New("netloop: replay: the loop over its ticks has ended")

// result converts the result of a tick, and keeps its error.
func (p *Replay) result(t room.Replayed, err error) (ReplayTick, error) {
	var differs *room.Divergence
	var unrecorded *room.Unrecorded
	switch {
	case errors.As(err, &differs):
		err = (*Divergence)(differs)
	case errors.As(err, &unrecorded):
		err = (*NotReplayable)(unrecorded)
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("netloop: replay: %w", err)
	}
	p.err = err
	return ReplayTick(t), err
}

// Look calls fn with a valid Tick between two ticks, to read the state. If fn changes the state,
// the replay diverges.
func (p *Replay) Look(fn func(*Tick)) error { return p.room.e.Inspect(func() { fn(&p.room.tick) }) }

// GameTime returns the game time of the last tick.
func (p *Replay) GameTime() time.Duration { return p.room.now.GameTime }
