package rpcqueue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/netloop/netloop/internal/loop"
)

// traffic plays random messages and computes the possible outcomes of each.
type traffic struct {
	*room
	rnd     *rand.Rand
	methods []*Method
	pushed  []*testMessage
	last    map[senderStage]int // the newest letter that ran, per sender and stage
	limits  Limits
	wrong   error
}

// testMessage is a message that records its outcome.
type testMessage struct {
	number int
	from   uint64
	stage  loop.Stage // the one it must run at
	out    Outcome    // of Push
	tick   uint64     // in which it was pushed
	in     loop.Stage // and the stage that ran then
	ran    int
	gone   bool
}

type senderStage struct {
	from  uint64
	stage loop.Stage
}

// Random traffic: stages, numbers of fixed steps, handlers that queue, fail, reject and panic,
// leavers, full stages, budgets, and limits that drop, kick or count only. Every accepted message
// runs exactly once, at its stage, in the order of its sender, and in time; or it is counted with
// a reason.
func TestMessagesRunExactlyOnceOrAreCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newTraffic(t, rapid.Uint64().Draw(rt, "seed"))
		burst := rapid.SampledFrom([]int{3, 30, 3000}).Draw(rt, "burst")
		for range rapid.IntRange(1, 12).Draw(rt, "ticks") {
			for range x.rnd.IntN(burst) {
				x.sent = append(x.sent, x.write(x.rnd.IntN(20) == 0))
			}
			x.price()
			x.step(x.rnd.IntN(3))
			if x.rnd.IntN(4) == 0 {
				x.leave(uint64(1 + x.rnd.IntN(4)))
			}
			if err := errors.Join(x.wrong, x.nothingLost()); err != nil {
				rt.Fatal(err)
			}
		}
		x.rnd = nil // handlers only record from now on
		for range 3 {
			x.step(1)
		}
		for x.waits() {
			x.step(1) // A small budget needs more ticks.
		}
		if err := errors.Join(x.wrong, x.nothingLost(), x.checkOutcomes()); err != nil {
			rt.Fatal(err)
		}
	})
}

func newTraffic(t *testing.T, seed uint64) *traffic {
	x := &traffic{rnd: rand.New(rand.NewPCG(seed, 1)), last: make(map[senderStage]int)}
	for id := range uint32(6) {
		m := method(id, fmt.Sprint("m", id))
		for _, s := range loop.Stages() {
			if x.rnd.IntN(3) > 0 {
				m.Stages = append(m.Stages, s)
			}
		}
		m.LateDrop = x.rnd.IntN(3) == 0
		if x.rnd.IntN(3) == 0 {
			m.PerTick = x.rnd.IntN(5)
		}
		if x.rnd.IntN(3) == 0 {
			m.Limit = Bucket{PerSecond: 1 + 100*x.rnd.Float64(), Burst: 1 + x.rnd.IntN(20)}
		}
		x.methods = append(x.methods, m)
	}
	x.room = newRoom(t, x.methods...)
	x.room.push = x.push
	x.limit()
	for _, m := range x.methods {
		x.queue.handlers[m.ID] = func(_ *room, it *Item) error { return x.handle(it) }
	}
	x.room.add("sender", func(*room) {
		if x.rnd != nil && x.rnd.IntN(3) == 0 {
			x.push(x.write(false))
		}
	}, slicesOfStages()...)
	return x
}

// limit chooses the limits of the queue.
func (x *traffic) limit() {
	if x.rnd.IntN(2) == 0 {
		x.limits.Budget = 1 + x.rnd.IntN(200)
	}
	if x.rnd.IntN(2) == 0 {
		x.limits.Time = time.Duration(1 + x.rnd.IntN(1_000_000))
	}
	if x.rnd.IntN(2) == 0 {
		x.limits.SenderTime = time.Duration(1 + x.rnd.IntN(1_000_000))
	}
	if x.rnd.IntN(2) == 0 {
		x.limits.Sender = Bucket{PerSecond: 1 + 1000*x.rnd.Float64(), Burst: 1 + x.rnd.IntN(500)}
		x.limits.Kick = x.rnd.IntN(100)
		x.limits.Dry = x.rnd.IntN(3) == 0
	}
	if err := x.queue.SetLimits(x.limits); err != nil {
		x.tb.Fatal(err)
	}
	x.queue.OnLimit = func(from uint64, _ *Method, r Rung) {
		if r == Kick && !x.limits.Dry && !x.draining() {
			x.leave(from)
		}
	}
}

// price gives some methods another price.
func (x *traffic) price() {
	var prices []Price
	for x.rnd.IntN(3) > 0 {
		prices = append(prices, Price{Method: uint32(x.rnd.IntN(8)), Cost: time.Duration(x.rnd.IntN(200_000) - 10)})
	}
	x.queue.SetPrices(prices)
}

func (x *traffic) draining() bool { return x.queue.draining }

// waits reports whether anything is queued.
func (x *traffic) waits() bool {
	for _, s := range loop.Stages() {
		if x.queue.Depth(s) > 0 {
			return true
		}
	}
	return false
}

// write makes a message; a bad one requests a stage that its method does not allow.
func (x *traffic) write(bad bool) Item {
	m := x.methods[x.rnd.IntN(len(x.methods))]
	it := Item{Method: m, From: uint64(x.rnd.IntN(5))}
	l := &testMessage{from: it.From, stage: m.Default()}
	switch {
	case bad:
		it.Stage = loop.Stage(x.rnd.IntN(256))
	case x.rnd.IntN(2) == 0 && len(m.Stages) > 0:
		it.Stage = m.Stages[x.rnd.IntN(len(m.Stages))]
	}
	if it.Stage != 0 {
		l.stage = it.Stage
	}
	it.Msg = l
	return it
}

func (x *traffic) push(it Item) Outcome {
	l := it.Msg.(*testMessage)
	l.number, l.tick, l.in = len(x.pushed), x.tick, x.now.Stage
	l.out = x.hold(it)
	x.pushed = append(x.pushed, l)
	ok := it.Stage == 0 || it.Method.Allows(it.Stage)
	limited := l.out == ClientLimited || l.out == MethodLimited || l.out == TickLimited
	switch {
	case limited && (x.limits.Dry || it.From == 0):
		x.fail("a message of %d was %v", it.From, l.out)
	case limited:
	case !ok && l.out != StageNotAllowed && l.out != UnknownStage, ok && !l.out.Queued() && l.out != LateDropped && l.out != Full:
		x.fail("a message for %v was %v", it.Stage, l.out)
	}
	return l.out
}

func (x *traffic) fail(format string, a ...any) {
	x.wrong = errors.Join(x.wrong, fmt.Errorf("tick %d: "+format, append([]any{x.tick}, a...)...))
}

func (x *traffic) handle(it *Item) error {
	l := it.Msg.(*testMessage)
	l.ran++
	// Late is exact: it is set if the stage of the message had run before its arrival.
	due := l.tick
	if l.out == Late || l.in == l.stage {
		due++
	}
	switch {
	case l.ran > 1:
		x.fail("letter %d ran %d times", l.number, l.ran)
	case !l.out.Queued() || l.gone:
		x.fail("letter %d ran, which was %v, gone %v", l.number, l.out, l.gone)
	case x.now.Stage != l.stage || it.Stage != l.stage:
		x.fail("letter %d for %v ran at %v", l.number, l.stage, x.now.Stage)
	case l.stage != loop.FixedUpdate && x.tick > due && x.limits.Budget == 0 && x.limits.Time == 0 && x.limits.SenderTime == 0:
		x.fail("letter %d, pushed in tick %d at %v for %v and %v, was late", l.number, l.tick, l.in, l.stage, l.out)
	case l.out == Late && x.tick == l.tick:
		x.fail("letter %d was late and ran at once", l.number)
	}
	from := senderStage{l.from, l.stage}
	if newest, ok := x.last[from]; ok && newest > l.number {
		x.fail("letter %d ran after %d", l.number, newest)
	}
	x.last[from] = l.number
	return x.act()
}

// act performs a handler's random actions: queue, forget, fail, panic.
func (x *traffic) act() error {
	if x.rnd == nil {
		return nil
	}
	switch x.rnd.IntN(12) {
	case 0, 1:
		x.push(x.write(false))
	case 2:
		return errors.New("no")
	case 3:
		panic("ouch")
	case 5:
		return &Rejection{ClientGone + Outcome(x.rnd.IntN(4)), errors.New("no")}
	case 4:
		if x.rnd.IntN(20) == 0 {
			x.leave(uint64(1 + x.rnd.IntN(4)))
		}
	}
	return nil
}

func (x *traffic) leave(from uint64) {
	n := 0
	for _, l := range x.pushed {
		if l.from == from && l.out.Queued() && l.ran == 0 && !l.gone {
			l.gone = true
			n++
		}
	}
	if got := x.queue.Forget(from); got != n {
		x.fail("forgot %d of %d", got, n)
	}
}

// checkOutcomes checks every letter when all have run.
func (x *traffic) checkOutcomes() error {
	var outcomes [NumOutcomes]uint64
	for _, l := range x.pushed {
		outcomes[l.out]++
		if l.out.Queued() && !l.gone && l.ran != 1 {
			return fmt.Errorf("letter %d for %v, pushed in tick %d, was %v and ran %d times", l.number, l.stage, l.tick, l.out, l.ran)
		}
	}
	for o := Accepted; o <= TickLimited; o++ {
		if x.count(o) != outcomes[o] {
			return fmt.Errorf("%d %v counted, %d seen", x.count(o), o, outcomes[o])
		}
	}
	return nil
}
