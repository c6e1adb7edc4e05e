package rpcqueue

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/loop"
)

// TestMain runs 500 seeds of each property, or the number in NETLOOP_SEEDS.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", cmp.Or(os.Getenv("NETLOOP_SEEDS"), "500")); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// room is a loop with the built-in systems of RPCs, and a poll that pushes the test's messages.
type room struct {
	tb    testing.TB
	now   loop.Now
	loop  *loop.Loop[*room]
	queue *Queue[*room]
	push  func(Item) Outcome // into queue
	sent  []Item             // for the next poll
	got   []Outcome          // of the last poll
	ran   []string           // "Stage message"
	tick  uint64
	held  held
}

// held counts the amount in flight.
type held int

func (h *held) Held(n int) { *h += held(n) }

// method makes a method with messages of type *string.
func method(id uint32, name string, stages ...loop.Stage) *Method {
	return &Method{ID: id, Name: name, Stages: stages}
}

func newRoom(tb testing.TB, methods ...*Method) *room {
	tb.Helper()
	table, err := NewTable(methods...)
	if err != nil {
		tb.Fatal(err)
	}
	r := &room{tb: tb, queue: New[*room](table)}
	r.push = r.hold
	r.loop = loop.New(r, &r.now, func() time.Duration { return 0 })
	for _, m := range methods {
		if err := r.queue.Handle(m, (*room).note); err != nil {
			tb.Fatal(err)
		}
	}
	r.add("poll", (*room).poll, loop.EarlyUpdate)
	stages := loop.Stages()
	r.add("rpc", func(r *room) { r.queue.Drain(r.now.Stage, r) }, stages[:]...)
	return r
}

// handleOnly gives the room another queue, in which one method has a handler and others have none.
func (r *room) handleOnly(m *Method, h Handler[*room], others ...*Method) {
	r.tb.Helper()
	table, err := NewTable(append(others, m)...)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.queue = New[*room](table)
	if err := r.queue.Handle(m, h); err != nil {
		r.tb.Fatal(err)
	}
}

// add registers a built-in system.
func (r *room) add(name string, fn func(*room), stages ...loop.Stage) {
	r.tb.Helper()
	_, err := r.loop.Add(loop.Spec[*room]{Name: name, Place: loop.Head, Once: true, Critical: true, Ask: func(s loop.Stage) func(*room) {
		if slices.Contains(stages, s) {
			return fn
		}
		return nil
	}})
	if err != nil {
		r.tb.Fatal(err)
	}
}

func (r *room) poll() {
	r.got = nil
	for _, it := range r.sent {
		r.got = append(r.got, r.push(it))
	}
	r.sent = nil
}

// hold pushes an item with a size to account for.
func (r *room) hold(it Item) Outcome {
	it.Holds, it.Held = &r.held, 3
	o := r.queue.Push(it)
	if o.Queued() {
		r.held += 3
	}
	return o
}

func (r *room) note(it *Item) error {
	r.ran = append(r.ran, fmt.Sprintf("%v %v", r.now.Stage, it.Msg))
	return nil
}

// step runs a tick with that many fixed steps.
func (r *room) step(fixed int) {
	r.tb.Helper()
	r.tick++
	r.ran = nil
	r.queue.Begin(r.tick, time.Duration(r.tick)*time.Second/60)
	rec, err := r.loop.Step(loop.Input{Tick: r.tick, FixedSteps: fixed, FirstFixedStep: 1})
	if err != nil || len(rec.Panics) > 0 {
		r.tb.Fatalf("tick %d: error %v, panics %v", r.tick, err, rec.Panics)
	}
}

func (r *room) wantRan(want ...string) {
	r.tb.Helper()
	if !slices.Equal(r.ran, want) {
		r.tb.Fatalf("tick %d ran %q, want %q", r.tick, r.ran, want)
	}
}

// count sums an outcome over methods and stages.
func (r *room) count(o Outcome) (sum uint64) {
	r.queue.Counts(func(_ *Method, _ loop.Stage, x Outcome, n uint64) {
		if x == o {
			sum += n
		}
	})
	return sum
}

// nothingLost checks the equation of the package comment.
func (r *room) nothingLost() error {
	queued := uint64(0)
	for _, s := range loop.Stages() {
		queued += uint64(r.queue.Depth(s))
		waiting := 0
		for _, from := range r.queue.senders.byID {
			waiting += int(from.waiting[s])
		}
		if waiting != r.queue.Depth(s) {
			return fmt.Errorf("%v: %d are queued, but the senders count %d", s, r.queue.Depth(s), waiting)
		}
	}
	if uint64(r.held) != 3*queued {
		return fmt.Errorf("%d are queued, which hold %d", queued, r.held)
	}
	in := r.count(Accepted) + r.count(Late)
	out := r.count(Ran) + r.count(Failed) + r.count(Panicked) + r.count(ClientGone) +
		r.count(Forbidden) + r.count(Invalid) + r.count(NotOwner)
	if in != out+queued {
		return fmt.Errorf("%d accepted, but %d ended and %d are queued", in, out, queued)
	}
	return nil
}
