package transport

import (
	"testing"

	"pgregory.net/rapid"
)

// The acknowledgements of a session between two swaps are one arrival with the union of their
// ranges, newest first and without overlaps, up to the bound.
func TestAcknowledgementsBetweenTwoSwapsAreOneArrival(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEnd(false, SessionConfig{})
		want := map[uint64]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "datagrams") {
			var ranges []Range
			for last := rapid.Uint64Range(0, 200).Draw(t, "newest"); len(ranges) < 3; {
				first := last - min(last, rapid.Uint64Range(0, 5).Draw(t, "size"))
				ranges = append(ranges, Range{first, last})
				for id := first; id <= last; id++ {
					want[id] = true
				}
				gap := rapid.Uint64Range(2, 9).Draw(t, "gap")
				if first < gap {
					break
				}
				last = first - gap
			}
			if !e.inbox.Push(Arrival{Kind: Acks, Session: e.Session, Acks: ranges}) {
				t.Fatal("not taken")
			}
		}
		as := e.arrivals()
		if len(as) != 1 || as[0].Kind != Acks {
			t.Fatalf("%d arrivals", len(as))
		}
		got := map[uint64]bool{}
		for i, r := range as[0].Acks {
			if i > 0 && r.Last+1 >= as[0].Acks[i-1].First || r.First > r.Last {
				t.Fatalf("not in order, or not merged: %v", as[0].Acks)
			}
			for id := r.First; id <= r.Last; id++ {
				got[id] = true
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%v of %v", as[0].Acks, want)
		}
		for id := range want {
			if !got[id] {
				t.Fatalf("%d is missing in %v", id, as[0].Acks)
			}
		}
	})
}

// Ranges beyond the bound are dropped, oldest first, and the next swap begins anew.
func TestMergedAcknowledgementsAreBounded(t *testing.T) {
	e := newEnd(false, SessionConfig{})
	for range 2 {
		for id := uint64(1); id <= 1000; id += 2 {
			e.inbox.Push(Arrival{Kind: Acks, Session: e.Session, Acks: []Range{{id, id}}})
		}
		as := e.arrivals()
		if len(as) != 1 || len(as[0].Acks) != maxMergedAcks || as[0].Acks[0].Last != 999 || as[0].Acks[maxMergedAcks-1].Last != 999-2*(maxMergedAcks-1) {
			t.Fatalf("%d arrivals: %v", len(as), as[0].Acks)
		}
	}
}

// Of repeated counts only the last is kept, for each session by itself.
func TestCountsBetweenTwoSwapsAreOneArrivalEach(t *testing.T) {
	inbox := NewInbox(0, nil)
	one, _ := NewSession(SessionConfig{Inbox: inbox})
	other, _ := NewSession(SessionConfig{Inbox: inbox})
	for n := uint64(1); n <= 2*DefaultInboxPerSession; n++ {
		for _, s := range []*Session{one, other} {
			for _, k := range []ArrivalKind{RecordsApplied, Received} {
				if !inbox.Push(Arrival{Kind: k, Session: s, Value: n}) {
					t.Fatal("not taken")
				}
			}
		}
	}
	as := inbox.Swap(nil)
	if len(as) != 4 {
		t.Fatalf("%d arrivals", len(as))
	}
	for _, a := range as {
		if a.Value != 2*DefaultInboxPerSession {
			t.Errorf("%+v", a)
		}
	}
}

// Sessions join in order of arrival, a few with each swap, each with all of its arrivals, which are
// charged until then.
func TestJoinsWaitForTheirSwap(t *testing.T) {
	inbox := NewInbox(0, nil)
	inbox.MaxJoins = 2
	var all []*Session
	for range 5 {
		s, _ := NewSession(SessionConfig{Inbox: inbox})
		all = append(all, s)
		inbox.Push(Arrival{Kind: Joined, Session: s})
		inbox.Push(Arrival{Kind: Acks, Session: s, Acks: []Range{{7, 9}}})
		inbox.push(&Arrival{Kind: MessageArrived, Session: s}, 100)
	}
	if inbox.Len() != 15 {
		t.Errorf("%d arrivals wait", inbox.Len())
	}
	for swap, want := range [][]*Session{all[:2], all[2:4], all[4:], nil} {
		// Of the session that waits longest.
		inbox.Push(Arrival{Kind: Acks, Session: all[4], Acks: []Range{{1, uint64(swap)}}})
		as := inbox.Swap(nil)
		for _, s := range want {
			if len(as) < 3 || as[0].Session != s || as[0].Kind != Joined || as[1].Kind != Acks || as[2].Kind != MessageArrived {
				t.Fatalf("swap %d: %+v", swap, as)
			}
			if last := as[1].Acks[0]; last != (Range{7, 9}) {
				t.Errorf("swap %d: acknowledged %v", swap, as[1].Acks)
			}
			as = as[3:]
		}
		if extra := len(as); extra != max(0, swap-2) {
			t.Errorf("swap %d: %d more arrivals", swap, extra)
		}
		if left := max(0, 3-2*swap); inbox.bytes != left*(100+3*entryBytes+wholeBytes-entryBytes) {
			t.Errorf("swap %d: %d bytes wait", swap, inbox.bytes)
		}
	}
}

// A session that ends before its turn joins and ends in its turn.
func TestASessionThatEndsBeforeItsTurn(t *testing.T) {
	inbox := NewInbox(0, nil)
	inbox.MaxJoins = 1
	first, _ := NewSession(SessionConfig{Inbox: inbox})
	s, link := NewSession(SessionConfig{Inbox: inbox})
	inbox.Push(Arrival{Kind: Joined, Session: first})
	inbox.Push(Arrival{Kind: Joined, Session: s})
	link.End(Closed{Code: CodeLost})
	if inbox.Push(Arrival{Kind: Acks, Session: s}) {
		t.Error("something arrives of who is gone")
	}
	inbox.Swap(nil)
	if as := inbox.Swap(nil); len(as) != 2 || as[0].Kind != Joined || as[1].Kind != Gone {
		t.Errorf("%+v", as)
	}
	if inbox.Push(Arrival{Kind: Acks, Session: s}) || inbox.Len() != 0 {
		t.Error("something arrives of who is gone")
	}
}
