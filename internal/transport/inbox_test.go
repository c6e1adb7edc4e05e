package transport

import "testing"

// A crowd that fills the inbox costs a quiet session nothing of its share.
func TestFullInboxLeavesEverySessionItsShare(t *testing.T) {
	stats := new(Stats)
	b := NewInbox(0, stats)
	for len(b.arrivals) < maxInbox {
		flooder := NewSession(SessionConfig{Inbox: b, Stats: stats})
		for range DefaultInboxPerSession {
			if !b.Push(Arrival{Kind: MessageArrived, Session: flooder}) {
				t.Fatal("a session was refused below its bound")
			}
		}
		if b.Push(Arrival{Kind: MessageArrived, Session: flooder}) {
			t.Fatal("a session went beyond its bound")
		}
	}
	quiet := NewSession(SessionConfig{Inbox: b, Stats: stats})
	for range fairInbox {
		if !b.Push(Arrival{Kind: MessageArrived, Session: quiet}) {
			t.Fatal("the quiet session was refused")
		}
	}
	if b.Push(Arrival{Kind: MessageArrived, Session: quiet}) || stats.Dropped(DropInboxTotal) != 1 {
		t.Error("the share is not the bound of a full inbox")
	}
}
