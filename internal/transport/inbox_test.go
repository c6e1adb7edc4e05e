package transport

import "testing"

// The bytes of an inbox are bounded as its arrivals are, over all sessions.
func TestFullInboxIsBoundedInBytes(t *testing.T) {
	stats := new(Stats)
	b := NewInbox(0, stats)
	flooders := 0
	for ; b.bytes < maxInboxBytes; flooders++ {
		s, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
		if !b.push(&Arrival{Kind: MessageArrived, Session: s}, maxInboxBytesPerSession) {
			t.Fatal("a session was refused below its bound")
		}
		if b.push(&Arrival{Kind: MessageArrived, Session: s}, 1) {
			t.Fatal("a session went beyond its bound")
		}
	}
	quiet, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
	if flooders != maxInboxBytes/maxInboxBytesPerSession || !b.push(&Arrival{Kind: MessageArrived, Session: quiet}, fairInboxBytes) {
		t.Error(flooders, "fill it, or the quiet session was refused")
	}
	if b.push(&Arrival{Kind: MessageArrived, Session: quiet}, 1) || stats.Dropped(DropInboxTotal) != 1 {
		t.Error("the share is not the bound of a full inbox")
	}
	if b.Swap(nil); !b.push(&Arrival{Kind: MessageArrived, Session: quiet}, maxInboxBytesPerSession) {
		t.Error("it is full after a swap")
	}
}

// A crowd that fills the inbox costs a quiet session nothing of its share.
func TestFullInboxLeavesEverySessionItsShare(t *testing.T) {
	stats := new(Stats)
	b := NewInbox(0, stats)
	for len(b.arrivals) < maxInbox {
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
