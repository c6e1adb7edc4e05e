package transport

import "testing"

// The bytes of an inbox are bounded as its arrivals are, over all sessions.
func TestFullInboxIsBoundedInBytes(t *testing.T) {
	stats := new(Stats)
	b := NewInbox(0, stats)
	for b.bytes < maxInboxBytes {
		s, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
		fits := min(maxInboxBytesPerSession, maxInboxBytes-b.bytes)
		if !b.push(&Arrival{Kind: MessageArrived, Session: s}, fits-entryBytes) {
			t.Fatal("a session was refused below its bound")
		}
		if b.push(&Arrival{Kind: MessageArrived, Session: s}, 0) && fits == maxInboxBytesPerSession {
			t.Fatal("a session went beyond its bound")
		}
	}
	was := stats.Dropped(DropInboxTotal)
	quiet, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
	if !b.push(&Arrival{Kind: MessageArrived, Session: quiet}, fairInboxBytes-entryBytes) {
		t.Error("the quiet session was refused")
	}
	if b.push(&Arrival{Kind: MessageArrived, Session: quiet}, 0) || stats.Dropped(DropInboxTotal) != was+1 {
		t.Error("the share is not the bound of a full inbox")
	}
	if b.Swap(nil); !b.push(&Arrival{Kind: MessageArrived, Session: quiet}, maxInboxBytesPerSession-entryBytes) {
		t.Error("it is full after a swap")
	}
}

// A crowd that fills the inbox costs a quiet session nothing of its share.
func TestFullInboxLeavesEverySessionItsShare(t *testing.T) {
	stats := new(Stats)
	b := NewInbox(0, stats)
	for b.Len() < maxInbox {
		flooder, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
		for range DefaultInboxPerSession {
			if !b.Push(Arrival{Kind: MessageArrived, Session: flooder}) {
				t.Fatal("a session was refused below its bound")
			}
		}
		if b.Push(Arrival{Kind: MessageArrived, Session: flooder}) {
			t.Fatal("a session went beyond its bound")
		}
	}
	quiet, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
	for range fairInbox {
		if !b.Push(Arrival{Kind: MessageArrived, Session: quiet}) {
			t.Fatal("the quiet session was refused")
		}
	}
	if b.Push(Arrival{Kind: MessageArrived, Session: quiet}) || stats.Dropped(DropInboxTotal) != 1 {
		t.Error("the share is not the bound of a full inbox")
	}
}
