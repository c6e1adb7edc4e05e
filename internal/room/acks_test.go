package room_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// liar is the client's end of a session of a bare server: it sends arbitrary acknowledgements.
type liar struct {
	testConn
	inbox    *transport.Inbox
	snapshot int // number of received state packets
	closed   *transport.Closed
}

func newLiar() *liar {
	l := &liar{inbox: transport.NewInbox(0, nil)}
	l.Session, l.Link = transport.NewSession(transport.SessionConfig{Client: true, Inbox: l.inbox})
	return l
}

// exchange carries all bytes in both directions.
func (l *liar) exchange(t *testing.T, server *testConn) {
	t.Helper()
	l.Flush(0)
	carry(&l.testConn, server)
	carry(server, &l.testConn)
	if err := l.ReceiveStream(0, server.AppendStream(nil, 1<<20)); err != nil && !errors.As(err, &l.closed) {
		t.Fatal(err)
	}
	for _, a := range l.inbox.Swap(nil) {
		if a.Kind == transport.State {
			l.snapshot++
		}
	}
}

// A client that acknowledges packets that were never sent is counted, does not delay the snapshots
// of others, and is disconnected with a code in the end.
func TestAFalseAcknowledgementEndsWithAKick(t *testing.T) {
	var left *netloop.Closed
	b := newBare(t, func(r *netloop.Room) {
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left = why })
	})
	honest, lying := newLiar(), newLiar()
	theirs, its := b.join(), b.join()
	n := 0
	for ; n < 2*room.MaxUnsentAcks && lying.closed == nil; n++ {
		if honest.snapshot > 0 {
			honest.AckState(uint64(honest.snapshot))
		}
		lying.AckState(uint64(1_000_000 + 2*n)) // also names all earlier numbers
		b.step()
		honest.exchange(t, theirs)
		lying.exchange(t, its)
	}
	// Each of its datagrams names up to 32 ranges: the more false acknowledgements, the earlier
	// the kick.
	if lying.closed == nil || lying.closed.Code != netloop.CodeProtocol || lying.closed.Text == "" || n < room.MaxUnsentAcks/transport.MaxAckRanges {
		t.Fatalf("after %d datagrams the client was told %+v", n, lying.closed)
	}
	its.End(*lying.closed)
	b.step()
	if left.Code != netloop.CodeProtocol {
		t.Errorf("it left because of %v", left)
	}
	unsent := b.room.World().Stats().AckUnknown
	if unsent <= room.MaxUnsentAcks || !b.scraped(fmt.Sprintf(`netloop_queue_drops_total{queue="acks",reason="never_sent"} %d`, unsent)) {
		t.Errorf("%d are counted", unsent)
	}
	if c, ok := b.room.Client(1); !ok || c.Kicked() != nil || c.Unsent() != 0 || honest.snapshot < n-1 {
		t.Errorf("the honest client got %d of %d snapshots", honest.snapshot, n)
	}
}

// The same holds for acknowledged records of the stream.
func TestAClientThatAppliedRecordsThatWereNeverSentIsKicked(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	s := b.join()
	b.step()
	b.push(s, transport.Arrival{Kind: transport.Acks})
	b.step()
	if strings.Contains(b.scrape(), "never_sent") {
		t.Error("acknowledgements are counted that name nothing")
	}
	for n := range room.MaxUnsentAcks + 1 {
		if c, _ := b.room.Client(s.ID()); c.Kicked() != nil {
			t.Fatalf("kicked after %d", n)
		}
		b.push(s, transport.Arrival{Kind: transport.RecordsApplied, Value: 1 << 40})
		b.step()
	}
	if c, ok := b.room.Client(s.ID()); !ok || c.Kicked() == nil || c.Kicked().Code != netloop.CodeProtocol {
		t.Errorf("not kicked after %d", room.MaxUnsentAcks+1)
	}
}
