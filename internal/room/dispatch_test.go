package room_test

import (
	"sync"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// handover is a room without a network, and readers that push decoded messages: the measured part
// is the hand-over through the inbox, the queue and the dispatch to a typed handler.
type handover struct {
	room    *room.Room
	readers []chan int // the number of messages to push; one goroutine each
	pushed  sync.WaitGroup
	now     time.Duration
	tick    uint64
	handled int
}

type word = struct{ N uint64 }

func newHandover(tb testing.TB, readers int) *handover {
	h := new(handover)
	s, err := netloop.New(netloop.Config{RPC: netloop.RPCLimits{Share: -1, ClientShare: -1}}, bareGame(func(r *netloop.Room) {
		bareWords.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m word) error { h.handled += int(m.N); return nil })
	}))
	if err != nil {
		tb.Fatal(err)
	}
	server := bridge.Netloop.Server(s)
	h.room = server.Room
	var sessions []*testConn
	for range readers {
		adm, err := server.Handler.Admit(tb.Context(), hello(bareSchema), "here")
		if err != nil {
			tb.Fatal(err)
		}
		session := newTestConn(adm)
		sessions = append(sessions, session)
	}
	h.tick = room.FirstTick
	if err := h.room.Step(h.room.Timeline().Input(h.tick)); err != nil {
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
						Kind: transport.MessageArrived, Session: session.Session, Method: bridge.Netloop.Method(bareWords), Decoded: message,
						Message: transport.Message{Method: idOf(bareWords), Reliable: true},
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

// round lets each reader push n messages at once, and runs them.
func (h *handover) round(n int) {
	h.pushed.Add(len(h.readers))
	for _, push := range h.readers {
		push <- n
	}
	h.pushed.Wait()
	h.tick++
	h.now += time.Second // So that no rate is exceeded.
	r := h.room
	r.PollAndDrain(h.tick, h.now, netloop.Update)
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

// BenchmarkHandOverFromReadersToHandler measures a message's way from the goroutine that read it
// to its typed handler, without decoding.
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
