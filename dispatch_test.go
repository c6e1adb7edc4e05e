package netloop

import (
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// handover is a room without a network, and readers that push messages which are
// decoded already: what is left is the hand-over through the inbox, the queue and
// the dispatch to a typed handler.
type handover struct {
	room    *Room
	readers []chan int // how many to push; one goroutine each
	pushed  sync.WaitGroup
	now     time.Duration
	tick    uint64
	handled int
}

type word = struct{ N uint64 }

func newHandover(tb testing.TB, readers int) *handover {
	h := new(handover)
	s, err := New(Config{RPC: RPCLimits{Share: -1, ClientShare: -1}}, bareGame(func(r *Room) {
		bareWords.Handle(r, func(_ *Tick, _ *Client, m word) error { h.handled += int(m.N); return nil })
	}))
	if err != nil {
		tb.Fatal(err)
	}
	h.room = s.room
	var sessions []*transport.Session
	for range readers {
		adm, err := s.admit(tb.Context(), bareSchema.s.Hello(), "here")
		if err != nil {
			tb.Fatal(err)
		}
		session := transport.NewSession(adm.Session)
		adm.Joined(session)
		sessions = append(sessions, session)
	}
	h.tick = firstTick
	if err := s.room.step(s.room.timeline().Input(h.tick)); err != nil {
		tb.Fatal(err)
	}
	for _, session := range sessions {
		push := make(chan int)
		h.readers = append(h.readers, push)
		message := &word{1}
		go func() {
			for n := range push {
				for range n {
					session.Inbox().Push(transport.Arrival{
						Kind: transport.MessageArrived, Session: session, Method: bareWords.m, Decoded: message,
						Message: transport.Message{Method: bareWords.m.Queue.ID, Reliable: true},
					})
				}
				h.pushed.Done()
			}
		}()
	}
	tb.Cleanup(func() {
		for _, push := range h.readers {
			close(push)
		}
	})
	return h
}

// round lets every reader push n messages at once, and runs them.
func (h *handover) round(n int) {
	h.pushed.Add(len(h.readers))
	for _, push := range h.readers {
		push <- n
	}
	h.pushed.Wait()
	h.tick++
	h.now += time.Second // So that no rate is exceeded.
	r := h.room
	r.rpcs.Begin(h.tick, h.now)
	r.now.Tick, r.now.Stage = h.tick, EarlyUpdate
	r.poll(&r.tick)
	r.now.Stage = Update
	r.rpcs.Drain(Update, &r.tick)
	r.now.Stage = 0
}

func TestHandOverFromReadersToHandlerAllocatesNothing(t *testing.T) {
	h := newHandover(t, 4)
	for range 10 {
		h.round(250)
	}
	h.handled = 0
	if n := testing.AllocsPerRun(50, func() { h.round(250) }); n != 0 {
		t.Errorf("%v allocations per 1 000 messages", n)
	}
	if h.handled != 51*1000 {
		t.Errorf("%d messages ran, want %d", h.handled, 51*1000)
	}
}

// BenchmarkHandOverFromReadersToHandler shows the cost of a message from the
// goroutine that read it to its typed handler, decoding apart.
func BenchmarkHandOverFromReadersToHandler(b *testing.B) {
	h := newHandover(b, 4)
	for range 10 {
		h.round(250)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.round(250)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
}
