package transport

import (
	"runtime"
	"testing"
	"weak"
)

// The bytes of an inbox are bounded like its arrivals, over all sessions.
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
	quiet, _ := NewSession(SessionConfig{Inbox: b, Stats: stats})
	if b.push(&Arrival{Kind: MessageArrived, Session: quiet}, fairInboxBytes-entryBytes+1) {
		t.Error("a full inbox takes a message beyond the share of a session")
	}
	was := stats.Dropped(DropInboxTotal)
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

// An arrival counts with its payload and its state.
func TestAnArrivalCountsWithItsBytes(t *testing.T) {
	b := NewInbox(0, nil)
	s, _ := NewSession(SessionConfig{Inbox: b})
	a := Arrival{Kind: MessageArrived, Session: s, Message: Message{Payload: make([]byte, 100)}, State: make([]byte, 20)}
	if !b.Push(a) || b.bytes != 120+entryBytes+wholeBytes {
		t.Errorf("%d bytes are counted", b.bytes)
	}
}

// A crowd that fills the inbox does not take a quiet session's share.
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

// An inbox keeps no reference to taken arrivals, not even to the last one.
func TestAnInboxReleasesTakenArrivals(t *testing.T) {
	for name, take := range map[string]func(b *Inbox){
		"each": func(b *Inbox) { b.Each(func(*Arrival) {}) },
		"swap": func(b *Inbox) { b.Swap(b.Swap(nil)) },
	} {
		e := newEnd(false, SessionConfig{})
		decoded := weak.Make(bring(e, new([1 << 10]byte)))
		if take(e.inbox); e.inbox.Len() != 0 {
			t.Errorf("%s: %d arrivals are left", name, e.inbox.Len())
		}
		if runtime.GC(); decoded.Value() != nil {
			t.Errorf("%s: the message is still held", name)
		}
		runtime.KeepAlive(e)
	}
}

// bring pushes a message decoded to v.
func bring[T any](e *end, v *T) *T {
	e.inbox.Push(Arrival{Kind: MessageArrived, Session: e.Session, Decoded: v})
	return v
}

// A packet of inputs is copied, because its larger datagram is freed at once. A packet of state is
// as large as its datagram, and is not copied.
func TestAnInboxCopiesInputsOutOfTheirDatagram(t *testing.T) {
	e := newEnd(false, SessionConfig{})
	datagram := []byte("a datagram")
	for kind, copied := range map[ArrivalKind]bool{Inputs: true, State: false} {
		e.inbox.Push(Arrival{Kind: kind, Session: e.Session, State: datagram[2:]})
		e.inbox.Each(func(a *Arrival) {
			if string(a.State) != "datagram" || (&a.State[0] != &datagram[2]) != copied {
				t.Errorf("%v: %q is copied: %v", kind, a.State, !copied)
			}
		})
	}
}

// An owner may sleep while no arrival waits that must wake it. Acknowledgements and inputs call no
// Rouse, except for inputs that are not neutral while the owner sleeps.
func TestAnOwnerRestsUntilItIsRoused(t *testing.T) {
	e := newEnd(false, SessionConfig{})
	b, roused := e.inbox, 0
	b.Rouse = func() { roused++ }
	b.Idle = func(inputs []byte) bool { return len(inputs) == 1 }
	look := func(when string, calls int, rests bool) {
		t.Helper()
		if roused != calls || b.Roused() == rests || b.Rest() != rests {
			t.Errorf("%s: roused %d times, want %d; it has to look: %v; may rest: %v", when, roused, calls, b.Roused(), b.Rest())
		}
	}
	push := func(k ArrivalKind, inputs string, waits int) {
		t.Helper()
		if !b.Push(Arrival{Kind: k, Session: e.Session, State: []byte(inputs)}) || b.Len() != waits {
			t.Errorf("%v %q: %d arrivals wait, want %d", k, inputs, b.Len(), waits)
		}
	}
	push(Inputs, "go", 1)
	push(Acks, "", 2)
	push(Mispredicted, "", 3)
	push(Mispredicted, "", 3)
	b.Swap(nil)
	push(Inputs, "go", 1)
	push(Acks, "", 2)
	look("awake, with inputs and acknowledgements", 0, true)
	push(Inputs, "-", 2)
	look("at rest, with inputs that mean nothing", 0, true)
	push(Inputs, "go", 3)
	if roused != 1 || !b.Roused() {
		t.Errorf("inputs that mean something rouse %d times", roused)
	}
	b.Swap(nil)
	push(Inputs, "-", 1)
	look("awake again", 1, true)
	b.Swap(nil)
	push(MessageArrived, "", 1)
	look("with a message", 2, false)
	b.Swap(nil)
	look("when it has looked", 2, true)
	b.Swap(nil)
	b.LimitJoins(1)
	for range 2 {
		s, _ := NewSession(SessionConfig{Inbox: b})
		b.Push(Arrival{Kind: Joined, Session: s})
	}
	b.Swap(nil)
	look("with somebody whose join waits", 4, false)
	b.Swap(nil)
	look("when all have joined", 4, true)
}
