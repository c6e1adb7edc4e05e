package history_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/internal/inspect/history"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// ringed plays the arena with a ring of so many ticks, and returns the ring and a recording of the
// same ticks.
func ringed(t *testing.T, ticks uint64, change func(*history.Rings)) (*history.Ring, *history.Rings, *history.Recording) {
	t.Helper()
	rings := history.NewRings(time.Duration(ticks) * time.Second / 60)
	change(rings)
	var ring *history.Ring
	file := recordArena(t, 6, 400, 4, func(r *room.Room) { ring = rings.Open(r, recording.Head{}) })
	return ring, rings, opened(t, file)
}

// The ticks of a ring are those of a recording of the same room: in each state, difference, message
// and lane, although the room has run more ticks.
func TestRingHasTheLastTicks(t *testing.T) {
	ring, rings, whole := ringed(t, 60, func(*history.Rings) {})
	kept, err := ring.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	h := kept.Head()
	sameTicks(t, kept, whole)
	if h.Name != "The last 1 s of the default room" || h.First != 341 || h.Last != 400 || h.Ticks != 60 || h.Outcome.State != history.Kept || h.Room != "" || h.Seed != "" {
		t.Fatalf("%+v", h)
	}
	if _, err := kept.State(h.First-1, "", 0); err == nil {
		t.Error("a dropped tick has a state")
	}
	if m, err := kept.Restricted().Messages(h.Last); err != nil || len(m.Arrivals) == 0 || slices.ContainsFunc(m.Arrivals, func(a history.Arrival) bool { return a.Value != nil || a.Inputs != nil }) {
		t.Errorf("for the role read: %+v, %v", m, err)
	}
	if ring.Close(); !reflect.DeepEqual(kept.Head(), h) {
		t.Error("a closed ring changes its frozen ticks")
	}
	// The ticks of an ended room are kept for a while.
	after, err := ring.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	sameTicks(t, after, whole)
	if rows := rings.EndedRows(); len(rows) != 1 || rows[0].Last != 400 {
		t.Errorf("%+v", rows)
	}
	if g, ok := rings.Ended(""); !ok || g != ring {
		t.Error("the ring of the ended room is not found")
	}
	rings.Release(history.EndedFor)
	if _, ok := rings.Ended(""); !ok {
		t.Error("the ticks are dropped early")
	}
	rings.Release(time.Minute + history.EndedFor)
	if left, _ := rings.Bytes(); left != 0 {
		t.Errorf("%d bytes are kept", left)
	}
	if _, err := ring.Freeze(); err == nil {
		t.Error("a dropped ring has ticks")
	}
}

// sameTicks checks that all answers of kept ticks are those of the whole recording.
func sameTicks(t *testing.T, kept, whole *history.Recording) {
	t.Helper()
	h := kept.Head()
	same := func(what string, a any, err error, b any, err2 error) {
		t.Helper()
		if err != nil || err2 != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s: %+v, %v; recorded %+v, %v", what, a, err, b, err2)
		}
	}
	for tick := h.First; tick <= h.Last; tick++ {
		a, err := kept.State(tick, "", 0)
		b, err2 := whole.State(tick, "", 0)
		same(fmt.Sprint("state ", tick), a.Objects, err, b.Objects, err2)
		m, err := kept.Messages(tick)
		n, err2 := whole.Messages(tick)
		same(fmt.Sprint("messages ", tick), m.Arrivals, err, n.Arrivals, err2)
		if tick > h.First {
			a, err := kept.Diff(tick, 0)
			b, err2 := whole.Diff(tick, 0)
			same(fmt.Sprint("difference ", tick), a, err, b, err2)
		}
	}
	a, err := kept.Ticks(h.First, h.Last, 1000)
	b, err2 := whole.Ticks(h.First, h.Last, 1000)
	same("ticks", a, err, b, err2)
	if len(a.Lanes) != 4 {
		t.Errorf("%d lanes", len(a.Lanes))
	}
	f, err := kept.Find(t.Context(), "ship changed", h.First+1, 0)
	g, err2 := whole.Find(t.Context(), "ship changed", h.First+1, 0)
	same("find", f.Found, err, g.Found, err2)
}

// Kept ticks as a file are those of the room, without a replay. A damaged file has its ticks up to
// the damage, and no program replays it.
func TestKeptTicksAreAFile(t *testing.T) {
	rings := history.NewRings(time.Second)
	var ring *history.Ring
	recorded := recordArena(t, 6, 400, 4, func(r *room.Room) { ring = rings.Open(r, recording.Head{}) })
	_, b, err := recording.NewReader(bytes.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	head, err := recording.ReadHead(b)
	if err != nil {
		t.Fatal(err)
	}
	ring.SetHead(head)
	kept, err := ring.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := kept.ExportTo(&out); err != nil {
		t.Fatal(err)
	}
	file := out.Bytes()
	again := opened(t, file)
	if h := again.Head(); h.First != 341 || h.Last != 400 || h.Ticks != 60 || h.Seed != "" || h.Outcome.Text != "the last 60 ticks of a running room" {
		t.Errorf("%+v", h)
	}
	sameTicks(t, again, opened(t, recorded))

	cut := opened(t, file[:len(file)-1])
	if h := cut.Head(); h.Last != 399 || h.Outcome.State != history.Truncated {
		t.Errorf("a file without its last byte: %+v", h)
	}
	damaged := bytes.Clone(file)
	damaged[len(file)-1]++
	if h := opened(t, damaged).Head(); h.Last != 399 || h.Outcome.State != history.Damaged {
		t.Errorf("a file with another last byte: %+v", h)
	}
	replay, err := netloop.NewReplay(netloop.Config{}, newArena(), bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replay.Step(); err == nil || !strings.Contains(err.Error(), "server inspect shows it") {
		t.Errorf("a replay: %v", err)
	}
}

// A ring drops its oldest ticks at the limit of bytes.
func TestRingsAreBoundedInBytes(t *testing.T) {
	seeds.OneGoroutine(t)
	ring, rings, whole := ringed(t, 1000, func(r *history.Rings) { r.Limit(100 << 10) })
	if n, limit := rings.Bytes(); n > limit {
		t.Errorf("%d bytes are kept, more than %d", n, limit)
	}
	kept, err := ring.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	h := kept.Head()
	if h.Ticks < 20 || h.Ticks > 200 || h.Last != 400 {
		t.Errorf("%d ticks are kept, up to %d", h.Ticks, h.Last)
	}
	a, err := kept.State(h.First, "", 0)
	b, err2 := whole.State(h.First, "", 0)
	if err != nil || err2 != nil || !reflect.DeepEqual(a.Objects, b.Objects) {
		t.Errorf("the first state is %+v, %v", a, err)
	}
}

// BenchmarkRing is the time of a tick of the arena with 20 players, whose programs run too, without
// a ring and with a full one.
func BenchmarkRing(b *testing.B) {
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			w := netlooptest.New(b, opening{arena.New(), func(r *room.Room) {
				if name == "with" {
					history.NewRings(time.Second).Open(r, recording.Head{})
				}
			}})
			for n := range 20 {
				c := w.Join("token", arena.JoinParams{Name: fmt.Sprint("player ", n)}, netlooptest.Link{Delay: 20 * time.Millisecond})
				arena.Play(c, func(t *netloop.Tick) arena.Control {
					return arena.Control{Thrust: t.Number()%3 > 0, Turn: int8(t.Number()/20%3) - 1, Fire: t.Number()%6 == 0}
				})
			}
			w.Step(120)
			for b.Loop() {
				w.Step(1)
			}
		})
	}
}
