package transport

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A byteQueue returns its bytes in order, and its memory depends on the queued bytes, not on the
// total.
func TestByteQueueKeepsOrderInLittleMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q byteQueue
		var want []byte
		next := byte(0)
		for range rapid.IntRange(1, 100).Draw(t, "n") {
			in := make([]byte, rapid.IntRange(0, 200).Draw(t, "in"))
			for i := range in {
				next++
				in[i] = next
			}
			q.append(in)
			want = append(want, in...)
			if len(q.buf) > 2*len(want)+len(in) {
				t.Fatalf("%d bytes wait in %d", len(want), len(q.buf))
			}
			limit := rapid.IntRange(0, 250).Draw(t, "limit")
			got := q.take([]byte("before"), limit)
			n := min(limit, len(want))
			if !bytes.Equal(got, append([]byte("before"), want[:n]...)) {
				t.Fatalf("took %v of %v", got, want)
			}
			if want = want[n:]; q.size() != len(want) {
				t.Fatalf("%d bytes wait, want %d", q.size(), len(want))
			}
		}
	})
}

// A messageQueue drops its oldest messages, within both of its bounds; its memory depends on the
// queued messages.
func TestMessageQueueIsAListOfTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var box, out messageQueue
		var inBox, inOut []string
		fill := func(q *messageQueue, list []string, b []byte) []string {
			dropped := q.room(len(b))
			if len(list)-dropped >= maxUnreliable {
				t.Fatal(len(list)-dropped, "wait beside a new one")
			}
			list = append(list[dropped:], string(b))
			start := len(q.buf)
			q.buf = append(q.buf, b...)
			q.close(start)
			return list
		}
		for i := range rapid.IntRange(1, 400).Draw(t, "n") {
			switch rapid.IntRange(0, 9).Draw(t, "do") {
			case 0:
				dropped := box.appendAll(&out)
				inBox, inOut = append(inBox, inOut...)[dropped:], nil
			case 1, 2:
				for range min(len(inBox), rapid.IntRange(0, 3).Draw(t, "pops")) {
					if got := string(box.front()); got != inBox[0] {
						t.Fatalf("the oldest is %.9q, want %.9q", got, inBox[0])
					}
					box.pop()
					inBox = inBox[1:]
				}
			default:
				for range rapid.SampledFrom([]int{1, 1, 1, 300}).Draw(t, "burst") {
					b := append(fmt.Append(nil, i), make([]byte, rapid.SampledFrom([]int{0, 9, 1000}).Draw(t, "size"))...)
					inOut = fill(&out, inOut, b)
				}
			}
			check(t, &box, inBox)
			check(t, &out, inOut)
		}
	})
}

// check compares a queue of messages with a list.
func check(t *rapid.T, q *messageQueue, want []string) {
	size := 0
	for _, s := range want {
		size += len(s)
	}
	if q.len() != len(want) || q.size() != size || size > maxUnreliableBytes || len(want) > maxUnreliable {
		t.Fatalf("%d messages of %d bytes, want %d of %d", q.len(), q.size(), len(want), size)
	}
	for i, s := range q.spans[q.head:] {
		if string(q.buf[s.start:s.end]) != want[i] {
			t.Fatalf("message %d of %d is another", i, len(want))
		}
	}
	if len(q.spans) > 4*maxUnreliable || len(q.buf) > 8*maxUnreliableBytes {
		t.Fatalf("%d messages of %d bytes wait in %d places and %d bytes", len(want), size, len(q.spans), len(q.buf))
	}
}

// Data of earlier flushes is sent before that of later ones, on both paths.
func TestSeveralFlushesKeepTheirOrder(t *testing.T) {
	for _, each := range []int{1, 2, 5} {
		server, client := pair(SessionConfig{})
		for i := range 4 * each {
			server.Send(Message{Method: uint32(i), Reliable: true})
			server.Send(Message{Method: uint32(100 + i)})
			if i%each == each-1 {
				server.Flush(0)
			}
		}
		carry(t, server, client, 0)
		var unreliable, reliable []uint32
		for _, a := range client.arrivals() {
			if a.Message.Reliable {
				reliable = append(reliable, a.Message.Method)
			} else {
				unreliable = append(unreliable, a.Message.Method)
			}
		}
		if len(reliable) != 4*each || !slices.IsSorted(reliable) || len(unreliable) != 4*each || !slices.IsSorted(unreliable) {
			t.Errorf("%d each: %v and %v arrived", each, reliable, unreliable)
		}
	}
}

// A flush beyond its limit keeps the newest messages of one datagram for the next flush, and drops
// the others. Reliable messages do not wait.
func TestALimitDropsTheOldestMessages(t *testing.T) {
	server, client := pair(SessionConfig{})
	for i := range 20 {
		server.Send(Message{Method: uint32(i), Payload: make([]byte, 90), Reliable: i%10 == 0})
	}
	flushed := func(most int) (n int, got []uint32) {
		n = server.LimitUnreliable(most)
		server.Flush(0)
		carry(t, server, client, 0)
		for _, a := range client.arrivals() {
			got = append(got, a.Message.Method)
		}
		slices.Sort(got)
		return n, got
	}
	if n, got := flushed(500); n != 0 || !slices.Equal(got, []uint32{0, 10}) {
		t.Errorf("%d B, and %v have arrived, want the reliable messages 0 and 10", n, got)
	}
	drops := server.stats.Dropped(DropUnreliableRate)
	if drops < 5 || drops > 9 {
		t.Errorf("%d drops are counted", drops)
	}
	if n, got := flushed(maxDatagramMessage); n < maxDatagramMessage-100 || len(got) != 18-int(drops) || got[len(got)-1] != 19 {
		t.Errorf("%d B, and %v have arrived after %d drops", n, got, drops)
	}
	if n, got := flushed(0); n != 0 || got != nil {
		t.Errorf("%d B, and %v have arrived again", n, got)
	}
	server.Send(Message{Method: 99})
	if n, got := flushed(Unlimited); n == 0 || len(got) != 1 {
		t.Errorf("%d B, and %v have arrived without a limit", n, got)
	}
}

// The lag is measured from a flush until its last datagram: a flush during another one belongs to
// that one, and the next one starts anew, its choke included.
func TestFlushLagCountsFromTheFirstFlushThatWaits(t *testing.T) {
	server, _ := pair(SessionConfig{})
	var lags []time.Duration
	server.stats.FlushLag = func(d time.Duration) { lags = append(lags, d) }
	at := func(us int) time.Duration { return time.Duration(us) * time.Microsecond }
	leave := func(from, to int) {
		if _, ok := server.appendDatagram(nil, 0); !ok {
			t.Fatal("nothing to send")
		}
		server.datagramSent(at(from), at(to), nil)
	}
	server.Slot().Packets = [][]byte{{1}, {2}}
	server.Flush(at(100))
	leave(150, 5150) // 5 ms of choke.
	server.Send(Message{Method: 1})
	server.Flush(at(5200))
	leave(5300, 5400)
	server.Flush(at(5500)) // It has no data.
	server.Send(Message{Method: 1})
	server.Flush(at(9000))
	leave(9100, 9200)
	if want := []time.Duration{at(300), at(200)}; !slices.Equal(lags, want) {
		t.Errorf("the lags are %v, want %v", lags, want)
	}
	if n, d := server.stats.Chokes.Load(), server.stats.ChokeNanos.Load(); n != 1 || d != uint64(at(5000)) {
		t.Errorf("%d chokes of %d ns", n, d)
	}
}

// The queue may reach its bound in bytes, but not exceed it.
func TestMessageQueueFillsToTheByte(t *testing.T) {
	var q messageQueue
	put := func(n int) (dropped int) {
		dropped = q.room(n)
		start := len(q.buf)
		q.buf = append(q.buf, make([]byte, n)...)
		q.close(start)
		return dropped
	}
	for range maxUnreliableBytes >> 10 {
		if n := put(1 << 10); n != 0 {
			t.Fatal(n, "dropped below the bound")
		}
	}
	if n := put(1); n != 1 || q.size() != maxUnreliableBytes-1<<10+1 {
		t.Errorf("%d dropped for one byte more, %d bytes wait", n, q.size())
	}
}

// A session ends once: it is counted once, and no more data of it is sent.
func TestASessionEndsOnce(t *testing.T) {
	server, _ := pair(SessionConfig{})
	server.Slot().Packets = [][]byte{{1}}
	server.Send(Message{Method: 1})
	server.Send(Message{Method: 1, Reliable: true})
	server.Flush(0)
	server.End(Closed{Code: CodeLost})
	server.End(Closed{Code: CodeKicked})
	counted := map[string]uint64{}
	server.stats.Disconnects(func(code string, n uint64) { counted[code] = n })
	if counted[codeTexts[CodeLost]] != 1 || counted[codeTexts[CodeKicked]] != 0 {
		t.Errorf("counted %v", counted)
	}
	if b, ok := server.appendDatagram(nil, 0); ok {
		t.Errorf("% x leaves after the end", b)
	}
	if b := server.AppendStream(nil, 100); len(b) != 0 {
		t.Errorf("% x leaves on the stream after the end", b)
	}
	if as := server.arrivals(); len(as) != 1 || as[0].Closed.Code != CodeLost {
		t.Errorf("arrivals %+v", as)
	}
}

// A closing session accepts only the peer's own close.
func TestAClosingSessionIgnoresData(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.Close(CodeKicked, "")
	client.Send(Message{Method: 1})
	client.Send(Message{Method: 1, Reliable: true})
	client.Flush(0)
	carry(t, client, server, 0)
	if as := server.arrivals(); len(as) != 0 || server.stats.Dropped(DropInboxGone) != 2 {
		t.Errorf("arrivals %v, and %d counted", kinds(as), server.stats.Dropped(DropInboxGone))
	}
}

// A too long length is detected with its last allowed byte.
func TestALengthThatDoesNotEndIsNotWaitedFor(t *testing.T) {
	for n := range maxLengthPrefix + 2 {
		_, _, err := CutFrame([]byte{0xff, 0xff, 0xff, 0xff}[:n], MaxFrame)
		if errors.Is(err, ErrFrameTooLarge) != (n >= maxLengthPrefix) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// A datagram that is too large for the link is lost alone; after any other error the link is
// closed, and queued data is kept. The owner has its slot again once the last packet was passed on,
// even if it was lost.
func TestSendingGoesOnPastADatagramThatIsTooLarge(t *testing.T) {
	gone := errors.New("gone")
	for err, want := range map[error]int{nil: 3, ErrDatagramTooLarge: 3, gone: 1} {
		server, _ := pair(SessionConfig{})
		slot := server.Slot()
		for range 3 {
			slot.Packets = append(slot.Packets, []byte{1})
		}
		server.Flush(0)
		handed := 0
		got := server.SendDatagrams(func() time.Duration { return 0 }, func([]byte) error {
			if handed++; server.LinkFacts().SlotFree {
				t.Errorf("%v: the slot is free before datagram %d has left", err, handed)
			}
			return err
		})
		lost := uint64(0)
		if err != nil {
			lost = uint64(want)
		}
		if handed != want || (got != nil) != errors.Is(err, gone) || server.LinkFacts().SlotFree != (want == 3) || server.stats.Dropped(DropDatagramUnsent) != lost {
			t.Errorf("%v: %d handed over, then %v; the slot is free: %v, counted %d", err, handed, got,
				server.LinkFacts().SlotFree, server.stats.Dropped(DropDatagramUnsent))
		}
	}
}

// A datagram that the link gives up because it is behind counts once, as behind alone.
func TestADatagramThatIsBehindCountsOnce(t *testing.T) {
	for err, want := range map[error][2]uint64{ErrBehind: {1, 0}, ErrDatagramTooLarge: {0, 1}} {
		server, _ := pair(SessionConfig{})
		server.Slot().Packets = [][]byte{{1}}
		server.Flush(0)
		if end := server.SendDatagrams(func() time.Duration { return 0 }, func([]byte) error { return err }); end != nil {
			t.Errorf("%v ends the sending: %v", err, end)
		}
		if got := [2]uint64{server.stats.Dropped(DropDatagramBehind), server.stats.Dropped(DropDatagramUnsent)}; got != want {
			t.Errorf("%v counts as %d, want %d", err, got, want)
		}
	}
}

// The reliable queue may be filled to its last byte; one more byte ends the connection.
func TestTheReliableQueueIsFullAtItsBound(t *testing.T) {
	for _, over := range []int{0, 1} {
		for name, add := range map[string]func(s *end, size int){
			"message": func(s *end, size int) {
				s.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, size-payloadOverhead(t, size))})
			},
			"record": func(s *end, size int) { s.SendRecord(make([]byte, size)) },
		} {
			server, _ := pair(SessionConfig{})
			q := &server.out.reliable
			for maxReliableBytes-q.size() > 10_000 {
				server.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, 5000)})
			}
			add(server, maxReliableBytes-q.size()+over)
			if server.out.closed != (over > 0) {
				t.Errorf("a %s that is %d over: closed %v", name, over, server.out.closed)
			}
		}
	}
}

// payloadOverhead returns the difference between the sizes of a test's message and its payload.
func payloadOverhead(t *testing.T, size int) int {
	t.Helper()
	for overhead := range 64 {
		m := Message{Method: 1, Reliable: true, Payload: make([]byte, size-overhead)}
		if sizeMessage(&m) == size {
			return overhead
		}
	}
	t.Fatal("a message is never so large")
	return 0
}

// A client sends no requests while its stream's queue is more than half full.
func TestRequestsWaitForAStreamThatIsBehind(t *testing.T) {
	for _, over := range []int{0, 1} {
		_, client := pair(SessionConfig{})
		client.out.reliable.buf = make([]byte, maxReliableBytes/2+over)
		client.RequestFullState()
		if asked := client.stats.Dropped(DropClosed) == 0; asked != (over == 0) {
			t.Errorf("%d bytes beyond the half: asked %v", over, asked)
		}
	}
}

// Unreliable messages of several flushes share one bound: the oldest are dropped and counted.
func TestUnreliableMessagesOfSeveralFlushesShareABound(t *testing.T) {
	server, client := pair(SessionConfig{})
	for i := range maxUnreliable + 5 {
		server.Send(Message{Method: uint32(i)})
		server.Flush(0)
	}
	if d := server.stats.Dropped(DropUnreliable); d != 5 {
		t.Errorf("%d were dropped, want 5", d)
	}
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != maxUnreliable || as[0].Message.Method != 5 {
		t.Errorf("%d arrive", len(as))
	}
}

// A reliable message that exceeds the inbox ends the session, and is not reported to the owner.
func TestAReliableMessageThatDoesNotFitEndsTheSession(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.Send(Message{Method: 1, Reliable: true})
	client.Send(Message{Method: 2, Reliable: true})
	client.Flush(0)
	b := client.AppendStream(nil, 1000)
	_ = server.ReceiveStream(0, b[:len(b)/2])
	server.Session.usage.bytes = server.inbox.maxBytes
	_ = server.ReceiveStream(0, b[len(b)/2:])
	if why, _ := server.Cause(); why.Code != CodeFlood {
		t.Errorf("it ends with %v", why)
	}
	if k := kinds(server.arrivals()); len(k) != 1 || k[0] != MessageArrived {
		t.Errorf("%v arrive", k)
	}
}
