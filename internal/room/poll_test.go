package room_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A client that permanently asks for the full state gets it ever more rarely, and at once again
// after a sufficient pause.
func TestFullStateIsGrantedMoreAndMoreRarely(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	const hertz = 60
	var granted []int // seconds since the first request
	var first uint64
	ask := func() {
		before := b.room.World().Stats().FullRequests
		for range 3 {
			b.push(s, transport.Arrival{Kind: transport.FullStateRequest})
		}
		b.step()
		if n := b.room.World().Stats().FullRequests - before; n > 0 {
			if len(granted) == 0 {
				first = b.tick
			}
			granted = append(granted, int(b.tick-first)/hertz)
		}
	}
	for range 97 * hertz {
		ask()
	}
	if want := []int{0, 1, 3, 7, 15, 31, 63, 95}; !slices.Equal(granted, want) {
		t.Errorf("granted after %v seconds, want %v", granted, want)
	}
	for range 2 * 32 * hertz { // The next is due in 30 s, and 32 more are a sufficient pause.
		b.step()
	}
	granted = granted[:0]
	for range 20 * hertz {
		ask()
	}
	if want := []int{0, 16}; !slices.Equal(granted, want) {
		t.Errorf("after a quiet time granted after %v seconds, want %v", granted, want)
	}
}

// A client's data in the room is removed with it: its groups, and its record of each PerClient.
func TestALeaverLeavesNothingBehind(t *testing.T) {
	group := netloop.NewClientGroup()
	var records *netloop.PerClient[int]
	var kept *netloop.Client
	b := newBare(t, func(r *netloop.Room) {
		records = netloop.NewPerClient[int](r)
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error { group.Add(tick, c); kept = c; return nil })
		r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, _ *netloop.Closed) {
			if *records.Of(c)++; !group.Has(c) {
				t.Error("OnLeave runs after the client has lost its groups")
			}
		})
	})
	recorded := func() (ok bool) { // False on a panic for a client without a record.
		defer func() { ok = recover() == nil }()
		return records.Of(kept) != nil
	}
	s := b.join()
	b.step()
	if !group.Has(kept) || !recorded() {
		t.Fatalf("joined: in the group %v, a record %v", group.Has(kept), recorded())
	}
	b.push(s, transport.Arrival{Kind: transport.Gone, Closed: &transport.Closed{Code: netloop.CodeLeft}})
	b.step()
	if group.Has(kept) || recorded() {
		t.Errorf("left: in the group %v, a record %v", group.Has(kept), recorded())
	}
}

// A joining client's first snapshot is sent in the tick of its join, independent of the turn of
// the others.
func TestTheFirstSnapshotDoesNotWaitForItsTurn(t *testing.T) {
	b := newBareAs(t, netloop.Config{Room: netloop.RoomSpec{SendEvery: 10}}, func(*netloop.Room) {})
	b.step()
	b.join()
	b.step()
	if c := b.room.Clients()[0]; inFlight(c) != 1 {
		t.Errorf("%d snapshots have left in the tick of the join", inFlight(c))
	}
	b.join()
	for b.tick < 9 {
		b.step()
	}
	if c := b.room.Clients()[0]; inFlight(c) != 1 {
		t.Errorf("%d snapshots have left before the first turn", inFlight(c))
	}
}

// An answer after 10 s is in time in the 600th tick after its call, and late in the 601st.
func TestAnAnswerIsInTimeUntilTheVeryEnd(t *testing.T) {
	for _, ticks := range []uint64{600, 601} {
		var owed netloop.Reply[struct{ N uint64 }]
		due, waiting := uint64(0), false
		core, faults := logtest.New(zapcore.InfoLevel)
		b := newBareAs(t, netloop.Config{Log: logging.Slog(zap.New(core))}, func(r *netloop.Room) {
			bareNobody.HandleLater(r, func(tick *netloop.Tick, _ *netloop.Client, _ struct{ N uint64 }, reply netloop.Reply[struct{ N uint64 }]) {
				owed, due = reply, tick.Number()+ticks
			})
			r.On(netloop.Update, "test.answer", func(tick *netloop.Tick) {
				if tick.Number() == due {
					waiting = owed.Waiting(tick)
					owed.Send(tick, struct{ N uint64 }{}, nil)
					owed.Send(tick, struct{ N uint64 }{}, nil)
				}
			})
		})
		s := b.join()
		b.step()
		b.push(s, transport.Arrival{
			Kind: transport.MessageArrived, Decoded: &struct{ N uint64 }{},
			Message: transport.Message{Method: idOf(bareNobody), Call: 7},
		})
		for b.tick < due || due == 0 {
			b.step()
		}
		inTime, late := ticks == 600, b.scraped(`netloop_queue_drops_total{queue="reply",reason="timed_out"} 1`)
		if waiting != inTime || late == inTime || len(answers(t, s)) == 1 != inTime {
			t.Errorf("after %d ticks: waiting %v, counted as late %v", ticks, waiting, late)
		}
		if faults.Len() != 1 { // The second answer is logged, a late one is not.
			t.Errorf("after %d ticks: the log has %v", ticks, faults.All())
		}
		b.lacks(`netloop_queue_drops_total{queue="reply",reason="second"} 1`)
	}
}

// A digest costs a pass over all objects, and data under way is sent again with it: a client that
// asks in each tick gets few, and an excessive number has no effect.
func TestDigestsAreGrantedOnceASecond(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s, asked, sent := b.join(), 0, 0
	for range 600 {
		for _, n := range []uint64{1, room.MaxDigests, 1 << 32} {
			b.push(s, transport.Arrival{Kind: transport.DigestRequest, Value: n << 10})
			asked++
		}
		b.push(s, transport.Arrival{Kind: transport.Acks, Acks: []transport.Range{{First: 1, Last: uint64(sent)}}})
		b.step()
		carry(s, nil)
		sent = int(b.room.World().Stats().Packets)
	}
	st := b.room.World().Stats()
	if st.DigestRequests != 10 || st.Digests != 10*room.MaxDigests || sent < 590 {
		t.Errorf("in ten seconds %d of %d requests were granted, and %d of %d snapshots had a digest",
			st.DigestRequests, asked, st.Digests, sent)
	}
	if line := fmt.Sprintf(`netloop_queue_drops_total{queue="digest",reason="too_often"} %d`, asked-10); !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

func TestMessagesOfARefusedJoinAreDropped(t *testing.T) {
	ran, left := 0, 0
	b := newBare(t, func(r *netloop.Room) {
		r.OnJoin(func(*netloop.Tick, *netloop.Client) error { return netloop.Refuse(netloop.CodeGame, "not you") })
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { left++ })
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) error { ran++; return nil })
	})
	s := b.join()
	b.push(s, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: 1}, Decoded: &struct{ N uint64 }{}})
	b.step()
	if cause, closing := s.Cause(); !closing || cause.Code != netloop.CodeGame {
		t.Errorf("it was told %v", cause)
	}
	s.End(transport.Closed{Code: netloop.CodeLost})
	b.step()
	if ran != 0 || left != 1 {
		t.Errorf("%d of its messages ran, and it left %d times", ran, left)
	}
	if n := b.room.Admission.Seats(); n != 0 {
		t.Errorf("%d seats are taken", n)
	}
}

// A message does not run if its sender has left before its turn; it is counted as client_gone, and
// is not logged as a fault.
func TestAMessageWhoseClientHasLeftCountsAsClientGone(t *testing.T) {
	core, logs := logtest.New(zapcore.InfoLevel)
	ran := 0
	b := newBareAs(t, netloop.Config{Log: logging.Slog(zap.New(core))}, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) error { ran++; return nil })
	})
	if err := b.room.Mailbox.Post(rpcqueue.Item{Method: &bridge.Netloop.Method(bareWords).Queue, From: 99, Msg: &struct{ N uint64 }{}}); err != nil {
		t.Fatal(err)
	}
	b.step()
	got := map[rpcqueue.Outcome]uint64{}
	b.room.Queue().Counts(func(_ *rpcqueue.Method, _ loop.Stage, o rpcqueue.Outcome, n uint64) { got[o] += n })
	if want := map[rpcqueue.Outcome]uint64{rpcqueue.Accepted: 1, rpcqueue.ClientGone: 1}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
	if ran != 0 || logs.Len() != 0 {
		t.Errorf("%d messages ran, and %d lines were logged", ran, logs.Len())
	}
}

// A call of a client with too many waiting messages is answered, and counted as usual.
func TestACallWithoutRoomIsAnswered(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareBig.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) (blob, error) { return blob{}, nil })
	})
	s := b.join()
	b.step()
	peer, link := transport.NewSession(transport.SessionConfig{Client: true, Inbox: transport.NewInbox(0, nil)})
	question, err := bridge.Netloop.Method(bareBig).In.Append(nil, &struct{ N uint64 }{1})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() []netloop.Code {
		peer.Send(transport.Message{Method: idOf(bareBig), Call: 7, Reliable: true, Payload: question})
		peer.Flush(0)
		if err := s.ReceiveStream(0, link.AppendStream(nil, 1<<20)); err != nil {
			t.Fatal(err)
		}
		b.step()
		return answers(t, s)
	}
	const all = 264 << 10
	for range 2 { // The answered call is no longer under way.
		if codes := ask(); !slices.Equal(codes, []netloop.Code{0}) {
			t.Errorf("with room for it answered %v", codes)
		}
		s.Session.Held(all)
		if codes := ask(); !slices.Equal(codes, []netloop.Code{netloop.CodeBusy}) {
			t.Errorf("without room answered %v", codes)
		}
		s.Session.Held(-all)
	}
}

// answers returns the codes of the answers on a session's stream.
func answers(t testing.TB, s *testConn) (codes []netloop.Code) {
	t.Helper()
	for _, a := range heard(t, s) {
		if a.Kind == transport.MessageArrived {
			codes = append(codes, netloop.Code(a.Message.Code))
		}
	}
	return codes
}

// heard returns the arrivals of a client's stream.
func heard(t testing.TB, s *testConn) []transport.Arrival {
	t.Helper()
	b := s.AppendStream(nil, 1<<20)
	inbox := transport.NewInbox(0, nil)
	_, peer := transport.NewSession(transport.SessionConfig{Client: true, Inbox: inbox})
	if err := peer.ReceiveStream(0, b); err != nil {
		t.Fatal(err)
	}
	return inbox.Swap(nil)
}

// A joining client is told the changes since its admission, and only these.
func TestAJoinerIsToldTheChangesSinceItsAdmission(t *testing.T) {
	for _, changed := range []bool{false, true} {
		scale := 1
		b := newBare(t, func(r *netloop.Room) {
			r.On(netloop.Update, "test.scale", func(tick *netloop.Tick) { r.SetTimeScale(tick, scale, 1) })
		})
		b.step()
		adm, err := b.server.Handler.Admit(context.Background(), hello(bareSchema), "here")
		if err != nil {
			t.Fatal(err)
		}
		if changed {
			scale = 2
		}
		b.step()
		s := newTestConn(adm)
		b.step()
		kinds := map[transport.ArrivalKind]int{}
		for _, a := range heard(t, s) {
			kinds[a.Kind]++
		}
		want := map[transport.ArrivalKind]int{transport.Accepted: 1, transport.EpochMoved: 1}
		if changed {
			want[transport.TimeScaleChanged] = 1
		}
		if !maps.Equal(kinds, want) {
			t.Errorf("changed %v: heard %v, want %v", changed, kinds, want)
		}
	}
}

// Log lines on behalf of a client name it, in hooks as in handlers, and later lines do not.
func TestLogLinesNameTheClientThatTheyAreAbout(t *testing.T) {
	core, logs := logtest.New(zapcore.InfoLevel)
	b := newBareAs(t, netloop.Config{Log: logging.Slog(zap.New(core))}, func(r *netloop.Room) {
		log := func(tick *netloop.Tick, _ *netloop.Client) { tick.Log().Info("client") }
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = "ann"; return nil })
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error { log(tick, c); return nil })
		r.OnDrop(log)
		r.OnResume(log)
		r.OnLeave(func(tick *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { log(tick, c) })
		bareWords.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, _ struct{ N uint64 }) error {
			tick.Log().Info("client")
			return nil
		})
		r.On(netloop.EarlyUpdate, "test.after_poll", func(tick *netloop.Tick) { tick.Log().Info("nobody") })
		r.On(netloop.Update, "test.after_handlers", func(tick *netloop.Tick) { tick.Log().Info("nobody") })
	})
	s := b.join()
	b.step()
	b.push(s, transport.Arrival{
		Kind: transport.MessageArrived, Decoded: &struct{ N uint64 }{}, Message: transport.Message{Method: idOf(bareWords)},
	})
	b.step()
	// The client has sent data, and so is kept.
	if err := s.ReceiveStream(1, []byte{0}); err != nil {
		t.Fatal(err)
	}
	s.End(lostLink)
	b.step()
	again := b.join()
	b.step()
	again.End(transport.Closed{Code: netloop.CodeLeft})
	b.step()
	lines := map[string]int{}
	for _, e := range logs.All() {
		lines[fmt.Sprint(e.Message, " ", e.ContextMap()["client"])]++
	}
	if want := (map[string]int{"client 1": 5, "nobody <nil>": 10}); !maps.Equal(lines, want) {
		t.Errorf("logged %v, want %v", lines, want)
	}
}

// A method without a handler is logged at its first message: the game's Open may have forgotten it.
func TestAMissingHandlerIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	b := newBareAs(t, netloop.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(*netloop.Room) {})
	s, m := b.join(), bridge.Netloop.Method(bareBig)
	for range 3 {
		b.push(s, transport.Arrival{
			Kind: transport.MessageArrived, Decoded: &struct{ N uint64 }{1}, Method: m,
			Message: transport.Message{Method: m.Queue.ID, Call: 7},
		})
		b.step()
	}
	if text := log.String(); strings.Count(text, "does not handle") != 1 || !strings.Contains(text, "method=big") {
		t.Errorf("the log is %s", text)
	}
}

// The codes are those of the table at RPCOption.
func TestCallsThatAreNotQueuedAreAnsweredByTheTable(t *testing.T) {
	for o, want := range map[rpcqueue.Outcome]netloop.Code{
		rpcqueue.Full: netloop.CodeBusy, rpcqueue.LateDropped: netloop.CodeRefused,
		rpcqueue.UnknownStage: netloop.CodeStageNotAllowed, rpcqueue.StageNotAllowed: netloop.CodeStageNotAllowed,
		rpcqueue.UnknownMethod: netloop.CodeUnknownMethod, rpcqueue.NoHandler: netloop.CodeUnknownMethod,
		rpcqueue.ClientLimited: netloop.CodeFlood, rpcqueue.MethodLimited: netloop.CodeFlood, rpcqueue.TickLimited: netloop.CodeFlood,
	} {
		if got := room.OutcomeCode(o); got != want {
			t.Errorf("%v: %v, want %v", o, got, want)
		}
	}
}

func TestCallThatCannotBeAnsweredSaysWhy(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareBig.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, q struct{ N uint64 }) (blob, error) {
			return blob{make([]byte, q.N)}, nil
		})
	})
	s := b.join()
	ask := func(m *schema.Method, stage netloop.Stage, n uint64) netloop.Code {
		b.push(s, transport.Arrival{
			Kind: transport.MessageArrived, Decoded: &struct{ N uint64 }{n},
			Message: transport.Message{Method: m.Queue.ID, Call: 7, Stage: uint8(stage)},
		})
		b.step()
		codes := answers(t, s)
		if len(codes) != 1 {
			t.Fatalf("%s: answered %v", m.Queue.Name, codes)
		}
		return codes[0]
	}
	b.step()
	if c := ask(bridge.Netloop.Method(bareNobody), 0, 0); c != netloop.CodeUnknownMethod {
		t.Errorf("a call without a handler got %v", c)
	}
	if c := ask(bridge.Netloop.Method(bareBig), netloop.PreUpdate, 0); c != netloop.CodeStageNotAllowed {
		t.Errorf("a call at another stage got %v", c)
	}
	if c := ask(bridge.Netloop.Method(bareBig), 0, 1); c != 0 {
		t.Errorf("a call got %v", c)
	}
	// An answer beyond the limit of the wire is an error, not silence.
	if c := ask(bridge.Netloop.Method(bareBig), 0, transport.MaxPayload+1); c != netloop.CodeInternal {
		t.Errorf("a call whose answer is too large got %v", c)
	}
}
