package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// mailFrom returns a message of a room with a payload of some bytes.
func mailFrom(from string, bytes int) Mail {
	return Mail{RoomMessage: &clusterv1.RoomMessage{To: []byte("to"), From: []byte(from), Payload: make([]byte, bytes)}}
}

// joined returns a member of a cluster without other servers.
func joined(t *testing.T) *Member {
	t.Helper()
	m := New(Config{Via: cluster.NewMemory(0, func() time.Duration { return 0 }).Member()})
	if err := m.Join(t.Context(), cluster.Server{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// A message counts with all its texts, its payload and its head.
func TestTheSizeOfAMail(t *testing.T) {
	l := Mail{RoomMessage: &clusterv1.RoomMessage{To: make([]byte, 1), From: make([]byte, 10), Kind: make([]byte, 100), Method: make([]byte, 1000), Payload: make([]byte, 10_000)}}
	if got, want := l.size(), 11_111+envelope; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// A batch has the oldest messages, up to its limits of messages and bytes. A message above the
// limit of bytes is a batch of its own.
func TestABatchIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []int // of the payloads
		want  []int // messages of the batches
	}{
		"small messages": {make([]int, 600), []int{256, 256, 88}},
		"bytes":          {[]int{20_000, 20_000, 20_000, 20_000}, []int{3, 1}},
		"to the byte":    {[]int{maxBatchBytes/2 - envelope - 5, maxBatchBytes/2 - envelope - 5, 0}, []int{2, 1}},
		"and beyond":     {[]int{maxBatchBytes/2 - envelope - 5, maxBatchBytes/2 - envelope - 4, 0}, []int{1, 2}},
		"a large one":    {[]int{0, maxBatchBytes + 1, 0}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &outbox{from: map[string]int{}}
			for i, n := range c.bytes {
				l := mailFrom([]string{"oak", "elm"}[i%2], n)
				b.queue, b.size = append(b.queue, l), b.size+l.size()
				b.from[string(l.GetFrom())]++
			}
			all := b.queue
			for i, want := range c.want {
				batch, q := b.takeLocked()
				if len(batch) != want || len(q.GetMessages()) != want || q.GetNumber() != uint64(i+1) || q.GetFirst() != 1 {
					t.Errorf("batch %d, from number %d on, has %d messages, want %d", q.GetNumber(), q.GetFirst(), len(batch), want)
				}
				for j := range batch {
					if batch[j].RoomMessage != all[j].RoomMessage || q.GetMessages()[j] != all[j].RoomMessage {
						t.Fatalf("message %d of batch %d is another one", j, i)
					}
				}
				all = all[len(batch):]
			}
			if len(b.queue) != 0 || b.size != 0 || len(b.from) != 0 || len(b.running) != len(c.want) {
				t.Errorf("%d messages with %d bytes of %v remain, and %d batches run", len(b.queue), b.size, b.from, len(b.running))
			}
			b.running = b.running[1:]
			b.queue = append(b.queue, mailFrom("oak", 0))
			if _, q := b.takeLocked(); len(c.want) > 1 && q.GetFirst() != 2 {
				t.Errorf("after the first answer batches from number %d on run, want 2", q.GetFirst())
			}
		})
	}
}

// The messages that wait for a server are bounded, by number, by sending room and by bytes.
func TestTheQueueOfAServerIsBounded(t *testing.T) {
	fill := func(m *Member, rooms, each, bytes int) (taken int) {
		for room := range rooms {
			for range each {
				if m.mail.queueLocked("y", mailFrom(fmt.Sprintf("room %d", room), bytes)) == nil {
					taken++
				}
			}
		}
		return taken
	}
	const size = 1 << 20
	for name, c := range map[string]struct{ rooms, each, bytes, want int }{
		"of one room":   {1, maxFromRoom + 1, 0, maxFromRoom},
		"of many rooms": {5, maxFromRoom, 0, maxQueued},
		"bytes":         {1, 5, size - envelope - len("to") - len("room 0"), 4},
		"bytes beyond":  {1, 5, size - envelope - len("to") - len("room 0") + 1, 3},
	} {
		m := joined(t)
		m.mail.boxes["y"] = &outbox{from: map[string]int{}, begins: true} // No call takes a batch.
		taken := fill(m, c.rooms, c.each, c.bytes)
		b := m.mail.boxes["y"]
		if bytes := taken * (c.bytes + envelope + len("to") + len("room 0")); taken != c.want || b.size != bytes || m.mail.bytes != bytes || len(b.queue) != taken {
			t.Errorf("%s: %d messages with %d bytes wait, want %d with %d", name, taken, b.size, c.want, bytes)
		}
	}
}

// At most 16 calls to a server run at once.
func TestTheCallsToAServerAreBounded(t *testing.T) {
	for running, want := range map[int]bool{0: true, maxBatches - 1: true, maxBatches: false} {
		m := joined(t)
		b := &outbox{from: map[string]int{}, running: make([]uint64, running), queue: []Mail{mailFrom("oak", 0)}}
		b.queue[0].Done = func(error) {}
		m.mail.mu.Lock()
		m.mail.callLocked("y", b)
		if b.begins != want {
			t.Errorf("beside %d calls another one begins: %v, want %v", running, b.begins, want)
		}
		m.mail.mu.Unlock()
		m.mail.calls.Wait()
		empty := &outbox{}
		if m.mail.callLocked("y", empty); empty.begins {
			t.Error("a call without messages begins")
			m.mail.calls.Wait()
		}
	}
}

// The bytes of all messages and the look-ups of rooms are bounded. A message to a room that is
// being looked up waits behind those before it.
func TestWaitingMailIsBounded(t *testing.T) {
	l := mailFrom("oak", 0)
	size := l.size()
	for name, c := range map[string]struct {
		bytes  int
		names  int // other rooms that are being looked up
		ahead  int // messages that wait for the look-up of this room
		known  bool
		closed bool
		want   error
	}{
		"nothing waits":            {},
		"bytes":                    {bytes: maxMailBytes - size},
		"more bytes":               {bytes: maxMailBytes - size + 1, want: errMuch},
		"look-ups":                 {names: maxLookups - 1},
		"more look-ups":            {names: maxLookups, want: errMuch},
		"a known room":             {names: maxLookups, known: true},
		"messages before it":       {names: maxLookups, ahead: maxFromRoom - 1},
		"too many before it":       {ahead: maxFromRoom, want: errMuch},
		"a known room, after more": {ahead: 1, known: true},
		"after the end":            {closed: true, want: errMuch},
	} {
		t.Run(name, func(t *testing.T) {
			m := joined(t)
			x := &m.mail
			x.bytes, x.closed = c.bytes, c.closed
			for i := range c.names {
				x.lookups[fmt.Sprint("room ", i)] = nil
			}
			if c.ahead > 0 {
				x.lookups["to"] = make([]Mail, c.ahead)
			}
			if c.known {
				m.rooms.where = map[string]string{"to": "y"}
				x.boxes["y"] = &outbox{from: map[string]int{}, begins: true}
			}
			l := mailFrom("oak", 0)
			done := make(chan error, 1)
			l.Done = func(err error) { done <- err }
			err := x.send(l)
			if !errors.Is(err, c.want) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			x.calls.Wait()
			switch {
			case err != nil && x.bytes != c.bytes:
				t.Errorf("%d bytes wait, want %d", x.bytes, c.bytes)
			case err != nil:
			case c.ahead > 0:
				if n := len(x.lookups["to"]); n != c.ahead+1 || x.bytes != c.bytes+size {
					t.Errorf("%d messages wait with %d bytes, want %d with %d", n, x.bytes, c.ahead+1, c.bytes+size)
				}
			case c.known:
				if n := len(x.boxes["y"].queue); n != 1 || x.bytes != c.bytes+size {
					t.Errorf("%d messages wait for the server, with %d bytes", n, x.bytes)
				}
			default:
				if err := <-done; !errors.Is(err, errNoRoom) || x.bytes != c.bytes || len(x.lookups) != c.names {
					t.Errorf("after the look-up: %v, %d bytes and %d look-ups remain", err, x.bytes, len(x.lookups))
				}
			}
		})
	}
}

// Messages arrive once and in order, each has its outcome, and no memory of them remains: not even
// the queue of a server that has left.
func TestMailIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := cluster.NewMemory(0, func() time.Duration { return 0 })
		var mu sync.Mutex
		var arrived, got []string
		join := func(id string) *Member {
			m := New(Config{Via: hub.Member(), Log: slog.New(slog.DiscardHandler)})
			m.HandleMail(func(l Mail) {
				mu.Lock()
				arrived = append(arrived, string(l.GetPayload()))
				mu.Unlock()
				if string(l.GetPayload()) == "refuse" {
					l.Done(transport.Refuse(transport.CodeFull, "full"))
					return
				}
				l.Done(nil)
			})
			if err := m.Join(t.Context(), cluster.Server{ID: id, Schema: "s"}); err != nil {
				t.Fatal(err)
			}
			return m
		}
		x, y := join("x"), join("y")
		e, err := y.Claim(t.Context(), "to")
		if err != nil {
			t.Fatal(err)
		}
		send := func(payload string) {
			l := mailFrom("oak", 0)
			l.Payload, l.Done = []byte(payload), func(err error) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprint(err))
			}
			x.Send(l)
		}
		var want []string
		for range 2 {
			for i := range 2*maxBatch + 1 {
				send(fmt.Sprint(i))
				want = append(want, fmt.Sprint(i))
			}
			synctest.Wait()
			if !slices.Equal(arrived, want) || len(got) != len(want) || slices.ContainsFunc(got, func(s string) bool { return s != "<nil>" }) {
				t.Errorf("%d of %d messages have arrived, with %d outcomes", len(arrived), len(want), len(got))
			}
		}
		got = nil
		send("refuse")
		if synctest.Wait(); len(got) != 1 || !strings.Contains(got[0], "full") {
			t.Errorf("outcomes %q", got)
		}
		if b := x.mail.boxes["y"]; x.mail.bytes != 0 || len(x.mail.lookups) != 0 || b == nil || b.size+len(b.queue)+len(b.running)+len(b.from) != 0 || b.begins {
			t.Errorf("%d bytes, %d look-ups and the queue %+v remain", x.mail.bytes, len(x.mail.lookups), b)
		}
		if err := y.GiveUp(t.Context(), "to", e); err != nil {
			t.Error(err)
		}
		if err := y.Close(t.Context()); err != nil {
			t.Error(err)
		}
		x.rooms.where = map[string]string{"to": "y"} // Its board is read later.
		got = nil
		send("late")
		if synctest.Wait(); len(got) != 1 || got[0] != errNoRoom.Error() || len(x.mail.boxes) != 0 || x.mail.bytes != 0 {
			t.Errorf("outcomes %q; %d queues with %d bytes remain", got, len(x.mail.boxes), x.mail.bytes)
		}
	})
}

// Close ends the calls with messages: it does not wait for a server that does not answer.
func TestCloseEndsCallsWithMail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := cluster.NewMemory(0, func() time.Duration { return 0 })
		var all []*Member
		for _, id := range []string{"x", "y"} {
			m := New(Config{Via: hub.Member()})
			if err := m.Join(t.Context(), cluster.Server{ID: id}); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		hub.Freeze("y", true)
		x, done := all[0], make(chan error, 1)
		x.rooms.where = map[string]string{"to": "y"}
		l := mailFrom("oak", 0)
		l.Done = func(err error) { done <- err }
		x.Send(l)
		synctest.Wait()
		began := time.Now()
		if err := x.Close(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("Close has taken %v: %v", time.Since(began), err)
		}
		if err := <-done; !errors.Is(err, ErrNoAnswer) {
			t.Errorf("the outcome is %v", err)
		}
	})
}

// The outcome of a message is that of the handler, or the reason for which the batch had none.
func TestOutcomes(t *testing.T) {
	full := &transport.Refusal{Code: transport.CodeFull, Text: "full"}
	answer := &clusterv1.RoomOutcomes{Outcomes: []*clusterv1.RoomOutcome{{}, {Code: int64(full.Code), Text: []byte(full.Text)}}}
	for _, c := range []struct {
		i, n int
		err  error
		want error
	}{
		{0, 2, nil, nil}, {1, 2, nil, full}, {0, 1, nil, ErrNoAnswer}, {0, 3, nil, ErrNoAnswer},
		{0, 2, cluster.ErrGone, errNoRoom}, {0, 2, cluster.ErrBusy, ErrNoAnswer}, {0, 2, full, full},
	} {
		err := outcomeAt(answer, c.i, c.n, c.err)
		var refused, want *transport.Refusal
		if same := errors.As(err, &refused) && errors.As(c.want, &want) && *refused == *want; !same && !errors.Is(err, c.want) {
			t.Errorf("message %d of %d, after %v: %v, want %v", c.i, c.n, c.err, err, c.want)
		}
	}
	c := &collected{outcomes: make([]*clusterv1.RoomOutcome, 3), left: 3, all: make(chan struct{})}
	c.set(1, full)
	c.set(1, nil)
	c.set(0, errors.New(strings.Repeat("x", maxText+1)))
	got := c.take().GetOutcomes()
	c.set(2, nil)
	if got[1].GetCode() != int64(full.Code) || got[0].GetCode() != int64(transport.CodeBusy) || len(got[0].GetText()) != maxText || string(got[2].GetText()) != ErrNoAnswer.Error() {
		t.Errorf("outcomes %v", got)
	}
	c = &collected{outcomes: make([]*clusterv1.RoomOutcome, 2), left: 2, all: make(chan struct{})}
	ended := func() bool {
		select {
		case <-c.all:
			return true
		default:
			return false
		}
	}
	if c.set(0, nil); ended() {
		t.Error("the batch has ended with one of two outcomes")
	}
	if c.set(1, nil); !ended() {
		t.Error("the batch has not ended with the last outcome")
	}
}

// The order of a server without batches is forgotten at the limit of servers, and no other one.
func TestIdleSendersAreForgotten(t *testing.T) {
	x := &joined(t).mail
	busy := x.sender("busy")
	busy.next = 7
	for i := range idleSenders - 1 {
		x.leave(x.sender(fmt.Sprint(i)))
	}
	if n := len(x.senders); n != idleSenders {
		t.Fatalf("%d servers are remembered below the limit", n)
	}
	x.leave(x.sender("more"))
	if n := len(x.senders); n != 2 || x.sender("busy") != busy {
		t.Errorf("%d servers are remembered, want the busy and the newest one", n)
	}
}

// A batch is answered within nine tenths of its time.
func TestABatchLeavesTimeForItsAnswer(t *testing.T) {
	if d := mostOf(context.Background()); d != cluster.StoreTime {
		t.Errorf("without a deadline: %v", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if d := mostOf(ctx); d > 54*time.Minute || d < 50*time.Minute {
		t.Errorf("of an hour: %v", d)
	}
}

// Requested rooms count until the load of their server contains them, or two heartbeats have
// passed.
func TestRequestedRoomsCountOnce(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		rooms int
		at    time.Duration
		want  int
		later int // missing afterwards, with the rooms before the requests
	}{
		"none is open":     {rooms: 3, at: s, want: 2, later: 2},
		"rooms have ended": {rooms: 1, at: s, want: 2, later: 2},
		"one is open":      {rooms: 4, at: s, want: 1, later: 2},
		"all are open":     {rooms: 5, at: s, want: 0, later: 0},
		"in time":          {rooms: 3, at: s + askedFor - 1, want: 2, later: 2},
		"their time ends":  {rooms: 3, at: s + askedFor, want: 0, later: 0},
	} {
		var a asked
		a.add("x", 3, 0)
		a.add("x", 4, s)
		if got := a.missing("x", c.rooms, c.at); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if got := a.missing("x", 3, s); got != c.later {
			t.Errorf("%s, later: %d, want %d", name, got, c.later)
		}
		if got := a.missing("y", 0, s); got != 0 {
			t.Errorf("of another server: %d", got)
		}
	}
}
