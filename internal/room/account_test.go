package room_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
)

// books plays a room with random traffic and records all calls.
type books struct {
	*court
	rnd      *rand.Rand
	sessions []*testConn // nil once it has left
	asked    map[*testConn]map[uint64]bool
	calls    uint64 // number of the newest call
	owed     []netloop.Reply[nothing]
	ran      map[int32]int // by the number of the order
}

// TestEveryQuestionIsAnsweredOnceOrItsAskerHasLeft: random calls at random stages, allowed or not,
// from clients that join, flood, are kicked and leave, to handlers that refuse, fail, panic,
// answer later, twice or never, with zero to two fixed steps. Each message that reached the room
// is in exactly one count, and each call is answered exactly once while its caller is in the room.
func TestEveryQuestionIsAnsweredOnceOrItsAskerHasLeft(t *testing.T) {
	for seed := range seeds.Of(t, 100) {
		b := newBooks(t, seed)
		if err := b.play(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func newBooks(t *testing.T, seed uint64) *books {
	b := &books{rnd: rand.New(rand.NewPCG(seed, 2)), asked: map[*testConn]map[uint64]bool{}, ran: map[int32]int{}}
	limits := netloop.RPCLimits{PerSecond: -1, Answers: 1 + b.rnd.IntN(20)}
	if b.rnd.IntN(2) == 0 {
		limits = netloop.RPCLimits{PerSecond: 60 + 600*b.rnd.Float64(), Burst: 1 + b.rnd.IntN(60), KickAfter: 1 + b.rnd.IntN(200), Answers: 1 + b.rnd.IntN(20)}
		limits.Dry = b.rnd.IntN(4) == 0
	}
	if b.rnd.IntN(2) == 0 {
		limits.Budget = 1 + b.rnd.IntN(30)
	}
	b.court = newCourt(t, netloop.Config{RPC: limits, Seed: 1}, func(r *netloop.Room) {
		anything.HandleLater(r, func(tick *netloop.Tick, _ *netloop.Client, o order, reply netloop.Reply[nothing]) {
			b.later(tick, o, reply)
		})
		whatever.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, o order) (nothing, error) { return nothing{}, b.handle(o) })
	})
	b.sessions = []*testConn{b.session, b.enter(nil), b.enter(nil)}
	return b
}

func (b *books) handle(o order) error {
	b.ran[o.N]++
	switch b.rnd.IntN(8) {
	case 0:
		panic("ouch")
	case 1:
		return errors.New("no")
	case 2:
		return netloop.Refuse(netloop.CodeGame, "no")
	}
	return nil
}

func (b *books) later(tick *netloop.Tick, o order, reply netloop.Reply[nothing]) {
	if b.rnd.IntN(2) == 0 {
		reply.Send(tick, nothing{}, nil)
	} else {
		b.owed = append(b.owed, reply)
	}
	if err := b.handle(o); err != nil {
		reply.Send(tick, nothing{}, err)
	}
}

// play runs some ticks, and then enough ticks to finish all calls.
func (b *books) play() error {
	for range 20 {
		for i, s := range b.sessions {
			switch {
			case s == nil || b.rnd.IntN(30) == 0:
				b.replace(i)
			default:
				for range b.rnd.IntN(20) {
					b.question(s)
				}
			}
		}
		if err := b.turn(b.rnd.IntN(3), b.rnd.IntN(4)); err != nil {
			return err
		}
	}
	for range 2000 {
		if err := b.turn(1, len(b.owed)); err != nil {
			return err
		}
		if len(b.owed) == 0 && b.room.Queue().Depth(netloop.Update)+b.room.Queue().Depth(netloop.FixedUpdate)+b.room.Queue().Depth(netloop.Initialization) == 0 {
			break
		}
	}
	return b.balance()
}

// replace lets a client leave, or another client join.
func (b *books) replace(i int) {
	if s := b.sessions[i]; s != nil {
		s.End(transport.Closed{Code: netloop.CodeLeft, Remote: true})
		b.sessions[i] = nil
		return
	}
	b.sessions[i] = b.enter(nil)
}

func (b *books) question(s *testConn) {
	b.calls++
	m := []uint32{idOf(anything), idOf(whatever), idOf(limitedTo3), idOf(strict), idOf(unhandled), 77}[b.rnd.IntN(6)]
	stage := []netloop.Stage{0, netloop.Initialization, netloop.FixedUpdate, netloop.Update, netloop.PreUpdate}[b.rnd.IntN(5)]
	a := transport.Arrival{
		Kind: transport.MessageArrived, Session: s.Session, Decoded: &order{N: int32(b.calls)},
		Message: transport.Message{Method: m, Call: b.calls, Stage: uint8(stage), Reliable: true},
	}
	if declared, ok := bridge.Netloop.Schema(policies).Method(m); ok {
		a.Method = declared
	}
	if !s.Inbox().Push(a) {
		return
	}
	if b.asked[s] == nil {
		b.asked[s] = map[uint64]bool{}
	}
	b.asked[s][b.calls] = false
}

// turn runs a tick, sends some pending answers, and reads the answers.
func (b *books) turn(steps, answers int) error {
	b.tick++
	in := b.room.Timeline().Input(b.tick)
	in.Epoch, in.FixedSteps = loop.Epoch{Tick: 1}, steps
	if err := b.room.Step(in); err != nil {
		return err
	}
	if err := b.inspect(func(t *netloop.Tick) {
		for range min(answers, len(b.owed)) {
			b.owed[0].Send(t, nothing{}, nil)
			b.owed = b.owed[1:]
		}
	}); err != nil {
		return err
	}
	for i, s := range b.sessions {
		if s == nil {
			continue
		}
		if err := b.read(s); err != nil {
			return err
		}
		if _, closing := s.Cause(); closing { // Kicked: it leaves.
			s.End(transport.Closed{Code: netloop.CodeFlood})
			delete(b.asked, s)
			b.sessions[i] = nil
		}
	}
	return nil
}

func (b *books) read(s *testConn) error {
	s.Flush(0)
	inbox := transport.NewInbox(1<<16, nil)
	_, peer := transport.NewSession(transport.SessionConfig{Client: true, Inbox: inbox})
	if err := peer.ReceiveStream(0, s.AppendStream(nil, 1<<20)); err != nil {
		return nil // The close frame of a kicked client.
	}
	for _, a := range inbox.Swap(nil) {
		if a.Kind != transport.MessageArrived {
			continue
		}
		done, known := b.asked[s][a.Message.Call]
		if !known || done {
			return fmt.Errorf("question %d: known %v, answered before %v", a.Message.Call, known, done)
		}
		b.asked[s][a.Message.Call] = true
	}
	return nil
}

// balance checks the counts once no message is under way.
func (b *books) balance() error {
	for _, s := range b.sessions {
		for call, answered := range b.asked[s] {
			if s != nil && !answered {
				return fmt.Errorf("question %d was never answered", call)
			}
		}
	}
	for n, times := range b.ran {
		if times != 1 {
			return fmt.Errorf("question %d ran %d times", n, times)
		}
	}
	var in, out int
	b.room.Queue().Counts(func(_ *rpcqueue.Method, _ loop.Stage, o rpcqueue.Outcome, n uint64) {
		switch {
		case o.Queued():
			in += int(n)
		case o >= rpcqueue.ClientGone:
			out += int(n)
		}
	})
	if in != out {
		return fmt.Errorf("%d were queued, and %d ended", in, out)
	}
	return nil
}

// A panic in a check is treated like a panic in the handler: its caller gets an answer, and other
// messages run.
func TestACheckThatPanicsCostsOneMessage(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	for _, n := range []int32{1, 66, 2} {
		c.send(c.session, idOf(valid), 0, order{N: n})
	}
	c.step()
	if got := answers(t, c.session); len(got) != 3 || c.game.ran["valid"] != 2 {
		t.Errorf("answered %v, %d ran", got, c.game.ran["valid"])
	}
	c.room.Report()
	if line := `netloop_rpcs_total{method="valid",outcome="panicked",stage="Update"} 1`; !c.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}
